"""The consumers of the REST API: create, read, list, relabel, remove."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from maestropy.server.rest import bodies, catalogue, fields, parameters, problems, routing, views
from maestropy.server.rest.dependencies import RestDependencies
from maestropy.store import consumers, errors, search

_ALL = frozenset(fields.CONSUMER_KEYS)
# What the reference says on PostgreSQL up to 17; later versions word and number the same violation differently.
_HAS_BUNDLES = (
    'Unable to delete Consumer: ERROR: update or delete on table "consumers" violates foreign key constraint '
    '"fk_resources_consumers" on table "resources" (SQLSTATE 23503)'
)


class Consumers:
    """Handlers of `/consumers` and `/consumers/{id}`."""

    def __init__(self, deps: RestDependencies) -> None:
        self._deps = deps

    async def create(self, request: Request) -> ASGIApp:
        """Add a consumer; one without a name is called by its id."""
        wanted = await bodies.new_consumer(request)
        new_id, now = self._deps.new_id(), self._deps.clock.now()
        row = consumers.ConsumerRow(
            id=new_id,
            name=wanted.name or new_id,
            labels=consumers.encode_labels(wanted.labels) if wanted.labels else None,
            created_at=now,
            updated_at=now,
        )
        try:
            created = await consumers.create(self._deps.database, row)
        except errors.Conflict as error:
            raise problems.Problem(catalogue.CONFLICT, "This Consumer already exists") from error
        return views.response(views.consumer(created, _ALL), status=201)

    async def get(self, request: Request) -> ASGIApp:
        """Show a consumer by its id; names are not ids."""
        key = request.path_params["id"]
        row = None if "\0" in key else await consumers.get(self._deps.database, key)
        if row is None:
            raise routing.not_found("Consumer", key)
        return views.response(views.consumer(row, _ALL))

    async def relabel(self, request: Request) -> ASGIApp:
        """Replace the labels of a consumer, the only thing about it that changes."""
        key = request.path_params["id"]
        patch = await bodies.consumer_patch(request)
        row = (
            None
            if "\0" in key
            else await consumers.set_labels(self._deps.database, key, labels=patch.labels, now=self._deps.clock.now())
        )
        if row is None:
            raise routing.not_found("Consumer", key)
        return views.response(views.consumer(row, _ALL))

    async def delete(self, request: Request) -> ASGIApp:
        """Remove a consumer that has no bundles; one that is not there counts as removed."""
        key = request.path_params["id"]
        try:
            if "\0" not in key:
                await consumers.delete(self._deps.database, key)
        except errors.Dangling as error:
            raise problems.Problem(catalogue.FORBIDDEN, _HAS_BUNDLES) from error
        return Response(status_code=204, headers=views.HEADERS)

    async def page(self, request: Request) -> ASGIApp:
        """Show a page of consumers."""
        asked = parameters.read(request.query_params)
        shown = fields.chosen(asked.fields, keys=fields.CONSUMER_KEYS, kind="Consumer")
        found = await consumers.page(self._deps.database, asked.question(search.CONSUMERS))
        items = [views.consumer(row, shown) for row in found.rows]
        return views.response(views.whole_list(items, kind="ConsumerList", page=asked.page, total=found.total))
