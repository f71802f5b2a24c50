"""Resource bundles as the REST API shows them: every source's, as plain JSON."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

from maestropy.aio import clock
from maestropy.sdk import failures, selector
from maestropy.sdk.errors import Conflict, Invalid, NotFound
from maestropy.sdk.publishing import Publisher, Sent
from maestropy.sdk.rest import PAGE_SIZE, Call, Rest
from maestropy.sdk.selector import Labels, Selector
from maestropy.sdk.settings import Settings
from maestropy.wire import codec, event, instant, jsontypes, validate
from maestropy.wire import errors as wire_errors
from maestropy.wire import work as wire

_PATH = "/resource-bundles"


class AsyncBundles:
    """The bundles of all sources by their ids. Programs that make works want `client.works` instead.

    >>> bundle = await client.bundles.get("55c61e54-a3f6-563d-9fec-b1fe297bdfdb")
    >>> bundle["status"]["ObservedVersion"]
    """

    def __init__(self, rest: Rest, *, publisher: Publisher, settings: Settings) -> None:
        self._rest = rest
        self._publisher = publisher
        self._settings = settings

    async def get(self, bundle_id: str) -> dict[str, Any]:
        """Return a bundle; raises NotFound. One that is being deleted has `deleted_at`."""
        path = f"{_PATH}/{quote(bundle_id, safe='')}"
        found: dict[str, Any] = await self._rest.ask(Call(method="GET", path=path, doing=f"get bundle {bundle_id}"))
        return found

    async def page(self, *, page: int = 1, size: int = 100, search: str = "", order_by: str = "") -> dict[str, Any]:
        """Return one page of bundles as the REST API sends it, with `total`."""
        query: dict[str, str | int] = {"page": page, "size": size, "search": search, "orderBy": order_by}
        return await self._rest.page(_PATH, doing="list bundles", query=query)

    async def list(
        self, *, labels: Labels = None, search: str = "", page_size: int = PAGE_SIZE
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the bundles with these labels that `search` finds, in the order of their ids.

        >>> [each["id"] async for each in client.bundles.list(search="consumer_name = 'cluster1'")]
        """
        wanted = selector.parse(labels)
        question = search_for([f"({search})"] if search else [], wanted=wanted)
        pages = self._rest.pages(_PATH, doing="list bundles", search=question, page_size=page_size)
        async with aclosing(pages) as items:
            async for item in items:
                found: dict[str, Any] = item
                if wanted.matches((found.get("metadata") or {}).get("labels") or {}):
                    yield found

    async def apply(self, bundle: Mapping[str, Any], *, operation_id: str = "") -> str:
        """Store a bundle given as the REST API shows one, and return its id.

        Without `id` a new bundle is made under a random one. With `id` the bundle must be there; a `version` must be
        the one that is stored, none means whatever is stored.
        """
        is_new = not bundle.get("id")
        bundle_id = clock.new_id() if is_new else str(bundle["id"])
        request = failures.Request(doing=f"apply bundle {bundle_id}", operation_id=operation_id or clock.new_id())
        stored = {} if is_new else await self.get(bundle_id)
        version = int(bundle.get("version") or 0)
        if not is_new and version not in (0, stored["version"]):
            raise Conflict(
                f"version {version} is not the latest, the latest version: {stored['version']}", doing=request.doing
            )
        consumer = str(bundle.get("consumer_name") or stored.get("consumer_name") or "")
        if not consumer:
            raise Invalid("consumer_name is missing", doing=request.doing, advice="name the cluster it is for")
        wanted = _work({**bundle, "id": bundle_id, "consumer_name": consumer}, request=request)
        wanted = wanted.with_metadata(uid=bundle_id, generation=0 if is_new else stored["version"])
        action = event.Action.CREATE_REQUEST if is_new else event.Action.UPDATE_REQUEST
        await self._publish(wanted, action, request=request)
        return bundle_id

    async def delete(self, bundle_id: str, *, operation_id: str = "") -> None:
        """Ask for a bundle's deletion; one that is not there counts as deleted."""
        request = failures.Request(doing=f"delete bundle {bundle_id}", operation_id=operation_id or clock.new_id())
        try:
            found = await self.get(bundle_id)
        except NotFound:
            return
        moment = instant.from_datetime(clock.Clock().now()).rfc3339_seconds()
        leaving = _work(found, request=request).with_metadata(uid=bundle_id, deletionTimestamp=moment)
        await self._publish(leaving, event.Action.DELETE_REQUEST, request=request)

    async def _publish(self, wanted: wire.ManifestWork, action: event.Action, *, request: failures.Request) -> None:
        marked = wanted.with_annotations({event.OPERATION_ID_KEY: request.operation_id})
        moment = instant.from_datetime(clock.Clock().now())
        stamp = codec.Stamp(id=clock.new_id(), source=self._settings.needs("source"), time=moment)
        wish = codec.spec_event(marked, action=action, stamp=stamp)
        await self._publisher.publish(wish, request=request, sent=Sent())


def search_for(terms: Iterable[str], *, wanted: Selector) -> str:
    """Return one search from several; the labels go along only where the server can read both in one dialect."""
    given = [*terms]
    is_plain = all("(" not in term or "->>" in term or "@>" in term for term in given)
    return " and ".join([*given, *(wanted.search_terms() if is_plain else [])])


def _work(bundle: Mapping[str, Any], *, request: failures.Request) -> wire.ManifestWork:
    try:
        found = codec.work_from_bundle({**bundle, "status": {}, "version": 0})
        validate.validate_bundle(jsontypes.encode(codec.bundle_from_spec(found.spec)))
    except (wire_errors.WireError, TypeError) as error:
        raise Invalid(str(error), doing=request.doing) from error
    return found
