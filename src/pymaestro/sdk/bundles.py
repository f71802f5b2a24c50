"""Resource bundles as the REST API shows them: every source's, as plain JSON."""

from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import quote

from pymaestro.sdk import selector
from pymaestro.sdk.rest import PAGE_SIZE, Call, Rest
from pymaestro.sdk.selector import Labels, Selector

_PATH = "/resource-bundles"


class AsyncBundles:
    """The bundles of all sources, for reading.

    >>> bundle = await client.bundles.get("55c61e54-a3f6-563d-9fec-b1fe297bdfdb")
    >>> bundle["status"]["ObservedVersion"]
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def get(self, bundle_id: str) -> dict[str, Any]:
        """Return a bundle; raises NotFound. One that is being deleted has `deleted_at`."""
        path = f"{_PATH}/{quote(bundle_id, safe='')}"
        found: dict[str, Any] = await self._rest.ask(Call(method="GET", path=path, doing=f"get bundle {bundle_id}"))
        return found

    async def list(
        self, *, labels: Labels = None, search: str = "", page_size: int = PAGE_SIZE
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the bundles with these labels that `search` finds, in the order of their ids.

        >>> [each["id"] async for each in client.bundles.list(search="consumer_name = 'cluster1'")]
        """
        wanted = selector.parse(labels)
        question = search_for([f"({search})"] if search else [], wanted=wanted)
        async for item in self._rest.pages(_PATH, doing="list bundles", search=question, page_size=page_size):
            found: dict[str, Any] = item
            if wanted.matches((found.get("metadata") or {}).get("labels") or {}):
                yield found


def search_for(terms: Iterable[str], *, wanted: Selector) -> str:
    """Return one search from several; the labels go along only where the server can read both in one dialect."""
    given = [*terms]
    is_plain = all("(" not in term or "->>" in term or "@>" in term for term in given)
    return " and ".join([*given, *(wanted.search_terms() if is_plain else [])])
