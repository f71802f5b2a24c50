"""Handle REST requests for resource bundles: get, list and delete. Sources write them over gRPC."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import RestPhrase
from maestropy.server.api.rest import field_selection, list_parameters, representations, resource_bundle_list
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import asked_positions, error_catalogue, routing
from maestropy.server.api.rest.http import errors as rest_errors
from maestropy.server.api.rest.stream_slots import StreamSlots
from maestropy.store import errors, search
from maestropy.store.lists import resource_lists


class ResourceBundleHandlers:
    """Handlers of `/resource-bundles` and `/resource-bundles/{id}`."""

    def __init__(self, deps: RestDependencies) -> None:
        self._deps = deps
        self._streams = StreamSlots(deps.max_streams)
        self._filling = False

    async def get(self, request: Request) -> ASGIApp:
        """Return a resource bundle, also while it is being deleted."""
        key = request.path_params["id"]
        row = None if "\0" in key else await self._find(key, sources=routing.client(request).sources)
        if row is None:
            raise routing.not_found("Resource", key)
        keys = field_selection.included_keys(request.query_params.get("include", ""))
        return representations.response(representations.resource_bundle(row, keys))

    async def delete(self, request: Request) -> ASGIApp:
        """Mark a resource bundle for deletion; an absent one counts as deleted. Its agent confirms the deletion."""
        key = request.path_params["id"]
        if "\0" not in key:
            sources = routing.client(request).sources
            rejected = await self._deps.mark_deleting(
                key, routing.operation_id(request), sources=sources, requester=routing.requester(request.scope)
            )
            if rejected is not None:
                raise rest_errors.RestError(error_catalogue.FORBIDDEN, rejected.reason)
        return Response(status_code=204, headers=representations.HEADERS)

    async def page(self, request: Request) -> ASGIApp:
        """Return a page of resource bundles."""
        parameters = list_parameters.read(request.query_params)
        keys = field_selection.selected_keys(
            parameters.fields, keys=field_selection.RESOURCE_BUNDLE_KEYS, kind="ResourceBundle"
        )
        query = parameters.query(search.RESOURCES)
        sources = routing.client(request).sources
        if sources is not None:
            query = resource_lists.of_sources(query, sources)
        query, page = parameters.continued(query)
        list_request = resource_bundle_list.ListRequest(
            query=query, page=page, keys=keys, fingerprint=parameters.fingerprint
        )
        return resource_bundle_list.ResourceBundleList(
            list_request,
            reads=self._deps.reads,
            position=asked_positions.asked(request),
            streams=self._streams,
            client=routing.client_key(request),
            on_stale=self._fill,
        )

    async def _find(self, key: str, *, sources: frozenset[str] | None) -> resource_lists.ResourceRow | None:
        if sources is None:
            return await resource_lists.get(self._deps.database, key)
        query = resource_lists.of_sources(resource_lists.by_id(key), sources)
        async with resource_lists.snapshot(self._deps.database) as snapshot:
            outline = await snapshot.outline(query)
            ids = [resource_id for resource_id, _ in outline.entries]
            return next(iter(await snapshot.rows(ids, resource_lists.ALL_COLUMNS)), None)

    async def _fill(self, ids: Sequence[str]) -> None:
        """Fill the renditions of resources that a Go server wrote."""
        # One at a time in a process: concurrent readers would all fill the same renditions.
        if self._filling:
            return
        self._filling = True
        try:
            await resource_lists.fill_renditions(self._deps.database, ids)
        except errors.StoreError as error:
            self._deps.journal.warning(RestPhrase.RENDITIONS_NOT_FILLED, {LogKey.COUNT: len(ids)}, err=error)
        finally:
            self._filling = False
