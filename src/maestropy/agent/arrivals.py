"""Stage: a kind that the cluster learns wakes the works that wait for it.

Custom kinds often come after the works that want them. While some work waits, the CustomResourceDefinitions are
watched, their names only; otherwise nobody is asked for anything. Kinds that come in another way are found by the slow
round.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from maestropy.aio import tasks
from maestropy.journal.emit import Journal
from maestropy.kube import errors, watch
from maestropy.kube.client import KubeClient
from maestropy.kube.request import ResourceType, Selector

_CRDS = ResourceType(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)


class Arrivals:
    """Who waits for kinds of which API groups."""

    def __init__(
        self,
        client: KubeClient,
        *,
        arrived: Callable[[str], None],
        jitter: Callable[[], float],
        journal: Journal,
        group: asyncio.TaskGroup,
    ) -> None:
        self._client = client
        self._arrived = arrived
        self._jitter = jitter
        self._journal = journal
        self._group = group
        self._awaited: dict[str, frozenset[str]] = {}
        self._task: asyncio.Task[None] | None = None

    def wait(self, key: str, api_groups: frozenset[str]) -> None:
        """Tell of `key` when a kind of one of these groups comes; of no group means no longer."""
        if api_groups:
            self._awaited[key] = api_groups
        else:
            self._awaited.pop(key, None)
        if self._awaited and self._task is None:
            self._task = tasks.join(self._group, "watch for new kinds", self._follow())
        elif not self._awaited and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        while True:
            follower = watch.Watch(
                self._client,
                _CRDS,
                selector=Selector(metadata_only=True),
                jitter=self._jitter,
                on_trouble=self._on_trouble,
            )
            try:
                async with aclosing(follower.changes()) as changes:
                    async for change in changes:
                        if isinstance(change, watch.Added | watch.Modified):
                            self._tell(change.object["metadata"]["name"])
            except errors.NotFound as error:
                self._on_trouble(error)
                await asyncio.sleep(5 + 5 * self._jitter())

    def _tell(self, name: str) -> None:
        api_group = name.partition(".")[2]
        for key, api_groups in list(self._awaited.items()):
            if api_group in api_groups:
                self._arrived(key)

    def _on_trouble(self, error: errors.KubeError) -> None:
        self._journal.warning("the watch for new kinds is interrupted", err=error)
