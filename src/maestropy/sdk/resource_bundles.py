"""Read, apply and delete resource bundles of all sources, as plain JSON of the REST API."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any

from maestropy.aio import clock
from maestropy.sdk import actions, history, selector
from maestropy.sdk._connection import client_spans, error_mapping, responses
from maestropy.sdk._connection.publisher import PublishAttempts, Publisher
from maestropy.sdk._connection.rest import PAGE_SIZE, WITH_EXECUTOR, RestCall, RestClient
from maestropy.sdk._operations import checks
from maestropy.sdk.actions import OperatorAction
from maestropy.sdk.consumers import AsyncConsumers
from maestropy.sdk.errors import Conflict, Invalid, NotFound
from maestropy.sdk.history import HistoryEntry, HistoryFilter
from maestropy.sdk.selector import Labels, LabelSelector
from maestropy.sdk.settings import Settings
from maestropy.wire import codec, json_types, json_values, kubernetes_names, timestamps
from maestropy.wire import errors as wire_errors
from maestropy.wire.events import event
from maestropy.wire.works import unknown_fields, validation
from maestropy.wire.works import work as wire

_PATH = "/resource-bundles"
LIST = "ResourceBundleList"
"""The kind of a list of resource bundles."""
_FIELDS = (
    *("id", "kind", "href", "name", "consumer_name", "version", "created_at", "updated_at", "deleted_at"),
    *("metadata", "manifests", "manifest_configs", "delete_option", "executor", "status"),
)


class AsyncResourceBundles:
    """The resource bundles of all sources, by ID. To create works, use `client.works`.

    >>> bundle = await client.resource_bundles.get("55c61e54-a3f6-563d-9fec-b1fe297bdfdb")
    >>> bundle["status"]["ObservedVersion"]
    """

    def __init__(self, rest: RestClient, *, publisher: Publisher, settings: Settings) -> None:
        self._rest = rest
        self._publisher = publisher
        self._settings = settings

    async def get(self, bundle_id: str) -> dict[str, Any]:
        """Return a resource bundle; raises NotFound. One that is being deleted has `deleted_at`."""
        path = f"{_PATH}/{checks.path_segment(bundle_id, name='bundle_id', doing='get a resource bundle')}"
        bundle: dict[str, Any] = await self._rest.ask(
            RestCall(
                method="GET",
                path=path,
                doing=f"get resource bundle {bundle_id}",
                expected=responses.Expected(kind="ResourceBundle", id=bundle_id),
                query=WITH_EXECUTOR,
            )
        )
        return bundle

    async def page(
        self,
        *,
        page: int | str = 1,
        size: int = 100,
        search: str = "",
        order_by: str = "",
        consumer: str = "",
        source: str = "",
    ) -> dict[str, Any]:
        """Return one page of resource bundles as the REST API sends it, with `total`.

        With `consumer` or `source`, only those of that consumer or source. If there are more, a maestropy server adds
        `continue`: as `page`, with the same search and order, it asks for the next page, however deep, at the cost of
        the first; a Go server has only numbers. `total_is_estimate` is there if the total was not counted: above
        100,000, above 10,000 if the search reads `payload` or `status`, and on a page of `continue` that is not the
        last. Ordered by `payload` or `status` a list has no `continue`.
        """
        scope = _scope(consumer=consumer, source=source)
        scoped = " and ".join([*scope, *([f"({search})"] if search else [])]) if scope else search
        position: dict[str, str | int] = {"continue": page} if isinstance(page, str) else {"page": page}
        query = {**position, "size": size, "search": scoped, "orderBy": order_by}
        listed = await self._rest.page(_PATH, kind=LIST, doing="list resource bundles", query=query)
        if isinstance(page, str) and listed.get("page") == 1:
            raise Invalid(
                "the server does not know the token and sent its first page",
                doing="list resource bundles",
                advice="a Go server has no tokens; use the number of the page",
            )
        return listed

    async def list(  # noqa: PLR0913 - one parameter per option
        self,
        *,
        labels: Labels = None,
        search: str = "",
        consumer: str = "",
        source: str = "",
        page_size: int = PAGE_SIZE,
        allow_lag: bool = False,
        fields: Iterable[str] = (),
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the resource bundles that match the labels and the search, ordered by ID.

        With `fields`, they have only these keys and `id`: `fields=("version", "updated_at")` reads no manifest. Labels
        are matched on the key `metadata`. A Go server breaks the connection. With `allow_lag`, a server with a read
        replica may leave out the last changes of others, never those of this client.

        >>> [bundle["id"] async for bundle in client.resource_bundles.list(consumer="cluster1", labels="app=web")]
        """
        label_selector = selector.parse(labels)
        terms = [*_scope(consumer=consumer, source=source), *([f"({search})"] if search else [])]
        full_search = search_for(terms, label_selector=label_selector)
        pages = self._rest.pages(
            _PATH,
            kind=LIST,
            doing="list resource bundles",
            search=full_search,
            page_size=page_size,
            allow_lag=allow_lag,
            fields=fields,
        )
        async with aclosing(pages) as items:
            async for item in items:
                bundle: dict[str, Any] = item
                if label_selector.matches((bundle.get("metadata") or {}).get("labels") or {}):
                    yield bundle

    async def resend(
        self,
        bundle_id: str,
        *,
        reason: str = "",
        requested_by: str = "",
        dry_run: bool = False,
        operation_id: str = "",
    ) -> OperatorAction:
        """Send a resource bundle to its agent again, in its current version; raises NotFound.

        An agent that has the version changes nothing. Raises Unsupported on a Go server.
        """
        segment = checks.path_segment(bundle_id, name="bundle_id", doing="resend a resource bundle")
        return await actions.perform(
            self._rest,
            f"{_PATH}/{segment}/resend",
            doing=f"resend resource bundle {bundle_id}",
            body={"reason": reason, "requested_by": requested_by},
            dry_run=dry_run,
            operation_id=operation_id,
        )

    async def history(
        self,
        bundle_id: str,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        kinds: str | Iterable[str] = (),
        newest_first: bool = False,
        limit: int | None = None,
    ) -> AsyncGenerator[HistoryEntry, None]:
        """Yield who changed a resource bundle, what and when, also of a deleted one, in the order of time.

        `kinds` are such as `work.updated`, or `work` for all of works. Raises Unsupported on a Go server.

        >>> [entry.user async for entry in client.resource_bundles.history(bundle_id, kinds="work.updated")]
        """
        wanted = HistoryFilter(since=since, until=until, kinds=kinds, newest_first=newest_first, limit=limit)
        doing = f"read the history of resource bundle {bundle_id}"
        async with aclosing(
            history.read(self._rest, history.work_path(bundle_id), doing=doing, wanted=wanted)
        ) as found:
            async for entry in found:
                yield entry

    async def apply(self, bundle: Mapping[str, Any], *, dry_run: bool = False, operation_id: str = "") -> str:
        """Store a resource bundle in the form of the REST API, and return its ID.

        Without `id` a new resource bundle gets a random ID. With `id` it must exist; a `version` must be the stored
        version, without one any stored version is updated. Without `executor` the stored one stays. With `dry_run` it
        is only checked, and compared with what is stored.
        """
        if not isinstance(bundle, Mapping):
            raise Invalid(f"the resource bundle is of type {type(bundle).__name__}", advice="give a dict")
        is_new = not bundle.get("id")
        bundle_id = clock.new_id() if is_new else str(bundle["id"])
        request = client_spans.begin(f"apply resource bundle {bundle_id}", operation_id)
        _check_fields(bundle, request=request)
        stored = {} if is_new else await self.get(bundle_id)
        version = int(bundle.get("version") or 0)
        if not is_new and version not in (0, stored["version"]):
            raise Conflict(
                f"version {version} is not the latest, the latest version: {stored['version']}", doing=request.doing
            )
        consumer = str(bundle.get("consumer_name") or stored.get("consumer_name") or "")
        if not consumer:
            raise Invalid("consumer_name is missing", doing=request.doing, advice="set the name of its consumer")
        desired = _valid_work(
            {"executor": stored.get("executor"), **bundle, "id": bundle_id, "consumer_name": consumer}, request=request
        )
        desired = desired.with_metadata(uid=bundle_id, generation=0 if is_new else stored["version"])
        action = event.EventAction.CREATE_REQUEST if is_new else event.EventAction.UPDATE_REQUEST
        if dry_run:
            self._publisher.check()
            await AsyncConsumers(self._rest).get(consumer)
        else:
            await self._publish(desired, action, request=request)
        return bundle_id

    async def delete(self, bundle_id: str, *, operation_id: str = "") -> None:
        """Request the deletion of a resource bundle; a missing one counts as deleted."""
        request = client_spans.begin(f"delete resource bundle {bundle_id}", operation_id)
        try:
            bundle = await self.get(bundle_id)
        except NotFound:
            return
        moment = timestamps.from_datetime(clock.Clock().now()).rfc3339_seconds()
        # Not validated: what is stored must be deletable, whatever an older server accepted.
        deleting = codec.work_from_resource_bundle({**bundle, "status": {}, "version": 0}).with_metadata(
            uid=bundle_id, deletionTimestamp=moment
        )
        await self._publish(deleting, event.EventAction.DELETE_REQUEST, request=request)

    async def _publish(
        self, desired: wire.ManifestWork, action: event.EventAction, *, request: error_mapping.Operation
    ) -> None:
        marked = desired.with_annotations({event.OPERATION_ID_KEY: request.operation_id})
        moment = timestamps.from_datetime(clock.Clock().now())
        attributes = codec.ContextAttributes(id=clock.new_id(), source=self._settings.needs("source"), time=moment)
        spec_event = codec.spec_event(marked, action=action, attributes=attributes)
        await self._publisher.publish(spec_event, request=request, attempts=PublishAttempts())


def validate(bundle: Mapping[str, Any]) -> None:
    """Check a resource bundle without a server; raises Invalid."""
    request = error_mapping.Operation(doing="use the resource bundle")
    _check_fields(bundle, request=request)
    if not bundle.get("consumer_name"):
        raise Invalid("consumer_name is missing", doing=request.doing, advice="set the name of its consumer")
    _valid_work({**bundle, "id": str(bundle.get("id") or clock.new_id())}, request=request)


def _scope(*, consumer: str, source: str) -> "tuple[str, ...]":
    """Return the search terms for one consumer or source."""
    terms = [f"consumer_name = {selector.quoted(consumer)}"] if consumer else []
    terms += [f"source = {selector.quoted(source)}"] if source else []
    return tuple(terms)


def search_for(terms: Iterable[str], *, label_selector: LabelSelector) -> str:
    """Join search terms; label terms are added only if the server can parse both in one dialect."""
    all_terms = [*terms]
    is_plain = all("(" not in term or "->>" in term or "@>" in term for term in all_terms)
    return " and ".join([*all_terms, *(label_selector.search_terms() if is_plain else [])])


def _check_fields(bundle: Mapping[str, Any], *, request: error_mapping.Operation) -> None:
    problems = [unknown_fields.problem(name, _FIELDS) for name in bundle if name not in _FIELDS]
    if not problems:
        return
    raise Invalid(kubernetes_names.join(problems), doing=request.doing)


def _valid_work(bundle: Mapping[str, Any], *, request: error_mapping.Operation) -> wire.ManifestWork:
    unusable = json_values.problems({**bundle, "status": {}})
    manifests = bundle.get("manifests")
    for index, manifest in enumerate(manifests if isinstance(manifests, list) else ()):
        if isinstance(manifest, Mapping):
            unusable += json_values.identity_problems(manifest, path=f"manifests[{index}]")
    if unusable:
        raise Invalid(kubernetes_names.join(unusable), doing=request.doing)
    try:
        work = codec.work_from_resource_bundle({**bundle, "status": {}, "version": 0})
        validation.validate_manifest_bundle(json_types.encode(codec.manifest_bundle_from_spec(work.spec)))
    except (wire_errors.WireError, TypeError) as error:
        raise Invalid(str(error), doing=request.doing) from error
    # A server stores invalid labels; the agent then fails to apply the work, for ever.
    problems = kubernetes_names.labels("metadata.labels", (bundle.get("metadata") or {}).get("labels"))
    if problems:
        raise Invalid(kubernetes_names.join(problems), doing=request.doing)
    return work
