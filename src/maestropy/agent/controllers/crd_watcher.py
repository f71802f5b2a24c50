"""Watch for new CRDs and reconcile the works that need their kinds.

Custom kinds are often installed after the works that use them. CustomResourceDefinitions are watched, metadata only,
while at least one work waits for a kind. Kinds that appear in another way, such as aggregated APIs, are found by the
periodic resync.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from maestropy.aio import tasks
from maestropy.journal.emit import Journal
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube import errors, watch
from maestropy.kube.client import KubeClient
from maestropy.kube.request import ObjectSelector, ResourceType

_CRDS = ResourceType(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)


class CrdWatcher:
    """Knows which works wait for kinds of which API groups."""

    def __init__(
        self,
        client: KubeClient,
        *,
        on_new_kind: Callable[[str], None],
        jitter: Callable[[], float],
        journal: Journal,
        group: asyncio.TaskGroup,
    ) -> None:
        self._client = client
        self._on_new_kind = on_new_kind
        self._jitter = jitter
        self._journal = journal
        self._group = group
        self._waiting: dict[str, frozenset[str]] = {}
        self._task: asyncio.Task[None] | None = None

    def watch_for(self, key: str, api_groups: frozenset[str]) -> None:
        """Notify about `key` when a CRD of one of these groups appears; an empty set ends the wait."""
        if api_groups:
            self._waiting[key] = api_groups
        else:
            self._waiting.pop(key, None)
        if self._waiting and self._task is None:
            self._task = tasks.start_in_group(self._group, "watch CRDs", self._watch())
        elif not self._waiting and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        while True:
            watching = watch.ResourceWatch(
                self._client,
                _CRDS,
                selector=ObjectSelector(metadata_only=True),
                jitter=self._jitter,
                on_error=self._on_trouble,
            )
            try:
                async with aclosing(watching.changes()) as changes:
                    async for change in changes:
                        if isinstance(change, watch.Added | watch.Modified):
                            self._notify(change.object["metadata"]["name"])
            except errors.NotFound as error:
                self._on_trouble(error)
                await asyncio.sleep(5 + 5 * self._jitter())

    def _notify(self, name: str) -> None:
        api_group = name.partition(".")[2]
        for key, api_groups in list(self._waiting.items()):
            if api_group in api_groups:
                self._on_new_kind(key)

    def _on_trouble(self, error: errors.KubeError) -> None:
        self._journal.warning(AgentPhrase.CRD_WATCH_INTERRUPTED, err=error)
