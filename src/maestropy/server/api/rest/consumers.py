"""Handle REST requests for consumers: create, get, list, patch and delete."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from maestropy.server.api.rest import field_selection, list_parameters, representations
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import asked_positions, bodies, error_catalogue, routing
from maestropy.server.api.rest.http import errors as rest_errors
from maestropy.server.decide.history import consumer_changes, kinds
from maestropy.store import consumers, data_safety, errors, rows, search

_ALL = frozenset(field_selection.CONSUMER_KEYS)
# The text of the Go server with PostgreSQL up to 17; later versions report the same violation differently.
_HAS_RESOURCES = (
    'Unable to delete Consumer: ERROR: update or delete on table "consumers" violates foreign key constraint '
    '"fk_resources_consumers" on table "resources" (SQLSTATE 23503)'
)


class ConsumerHandlers:
    """Handlers of `/consumers` and `/consumers/{id}`."""

    def __init__(self, deps: RestDependencies) -> None:
        self._deps = deps

    async def create(self, request: Request) -> ASGIApp:
        """Create a consumer; without a name it is named by its ID."""
        _check_unlimited(request)
        new_consumer = await bodies.new_consumer(request)
        new_id, now = self._deps.new_id(), self._deps.clock.now()
        row = consumers.ConsumerRow(
            id=new_id,
            name=new_consumer.name or new_id,
            labels=consumers.encode_labels(new_consumer.labels) if new_consumer.labels else None,
            created_at=now,
            updated_at=now,
        )
        try:
            created = await consumers.create(
                self._deps.database, row, entry_of=self._entry_of(request, kinds.CONSUMER_CREATED)
            )
        except errors.UniqueViolation as error:
            raise rest_errors.RestError(error_catalogue.CONFLICT, "This Consumer already exists") from error
        async with self._deps.database.connection() as connection:
            is_held = await data_safety.held_consumers(connection, [created.name])
        if is_held:
            # Its agent was connected before, and holds its works until it learns that the consumer exists.
            self._deps.request_resync(created.name)
        return representations.response(representations.consumer(created, _ALL), status=201)

    async def get(self, request: Request) -> ASGIApp:
        """Return a consumer by its ID; a name is not an ID."""
        key = request.path_params["id"]
        row = None if "\0" in key else await self._find(key, sources=routing.client(request).sources)
        if row is None:
            raise routing.not_found("Consumer", key)
        return representations.response(representations.consumer(row, _ALL))

    async def relabel(self, request: Request) -> ASGIApp:
        """Replace the labels of a consumer, its only mutable field."""
        _check_unlimited(request)
        key = request.path_params["id"]
        patch = await bodies.consumer_patch(request)
        row = (
            None
            if "\0" in key
            else await consumers.set_labels(
                self._deps.database,
                key,
                labels=patch.labels,
                now=self._deps.clock.now(),
                entry_of=self._entry_of(request, kinds.CONSUMER_LABELED),
            )
        )
        if row is None:
            raise routing.not_found("Consumer", key)
        return representations.response(representations.consumer(row, _ALL))

    async def delete(self, request: Request) -> ASGIApp:
        """Delete a consumer without resources; an absent one counts as deleted."""
        key = request.path_params["id"]
        try:
            if "\0" not in key:
                await consumers.delete(
                    self._deps.database, key, entry_of=self._entry_of(request, kinds.CONSUMER_DELETED)
                )
        except errors.ForeignKeyViolation as error:
            raise rest_errors.RestError(error_catalogue.FORBIDDEN, _HAS_RESOURCES) from error
        return Response(status_code=204, headers=representations.HEADERS)

    async def page(self, request: Request) -> ASGIApp:
        """Return a page of consumers."""
        parameters = list_parameters.read(request.query_params)
        keys = field_selection.selected_keys(parameters.fields, keys=field_selection.CONSUMER_KEYS, kind="Consumer")
        query = parameters.query(search.CONSUMERS)
        sources = routing.client(request).sources
        if sources is not None:
            query = consumers.of_sources(query, sources)
        consumer_page = await self._deps.reads.read(
            asked_positions.asked(request), lambda snapshots: consumers.page(snapshots, query)
        )
        items = [representations.consumer(row, keys) for row in consumer_page.rows]
        return representations.response(
            representations.whole_list(items, kind="ConsumerList", page=parameters.page, total=consumer_page.total)
        )

    def _entry_of(self, request: Request, kind: str) -> consumers.EntryOf:
        """Return the function that makes the history entry of a changed consumer."""
        now, requester = self._deps.clock.now(), routing.requester(request.scope)

        def entry_of(row: consumers.ConsumerRow) -> rows.HistoryEntry | None:
            if not self._deps.history.is_enabled:
                return None
            return rows.HistoryEntry(
                kind=kind,
                at=now,
                subject_id=row.id,
                consumer=row.name,
                requester=requester,
                operation_id=routing.operation_id(request),
                detail=consumer_changes.detail(row.labels),
            )

        return entry_of

    async def _find(self, key: str, *, sources: frozenset[str] | None) -> consumers.ConsumerRow | None:
        if sources is None:
            return await consumers.get(self._deps.database, key)
        consumer_page = await consumers.page(self._deps.database, consumers.of_sources(consumers.by_id(key), sources))
        return next(iter(consumer_page.rows), None)


def _check_unlimited(request: Request) -> None:
    """Reject changes of consumers by a client that is limited to sources: all sources share the consumers."""
    if routing.client(request).sources is not None:
        reason = f"{error_catalogue.UNAUTHORIZED.reason}: the token is limited to sources, which share the consumers"
        raise rest_errors.RestError(error_catalogue.UNAUTHORIZED, reason)
