"""The resource bundles of the REST API: read, list, ask for deletion. Only the gRPC endpoint writes them."""

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from maestropy.journal.fields import Key
from maestropy.server.rest import bundle_list, fields, parameters, routing, views
from maestropy.server.rest.dependencies import RestDependencies
from maestropy.store import errors, listing, search

_ALL: Final = frozenset(fields.BUNDLE_KEYS)
NOT_FILLED: Final = "renditions not filled"


class Bundles:
    """Handlers of `/resource-bundles` and `/resource-bundles/{id}`."""

    def __init__(self, deps: RestDependencies) -> None:
        self._deps = deps
        self._streams = asyncio.Semaphore(deps.max_streams)
        self._filling = False

    async def get(self, request: Request) -> ASGIApp:
        """Show a bundle, also while it is being deleted."""
        key = request.path_params["id"]
        row = None if "\0" in key else await listing.get(self._deps.database, key)
        if row is None:
            raise routing.not_found("Resource", key)
        return views.response(views.bundle(row, _ALL))

    async def delete(self, request: Request) -> ASGIApp:
        """Ask for the deletion of a bundle; it goes when its agent says so. One that is not there counts as gone."""
        key = request.path_params["id"]
        if "\0" not in key:
            await self._deps.mark_deleting(key, routing.operation_id(request))
        return Response(status_code=204, headers=views.HEADERS)

    async def page(self, request: Request) -> ASGIApp:
        """Show a page of bundles."""
        asked = parameters.read(request.query_params)
        shown = fields.chosen(asked.fields, keys=fields.BUNDLE_KEYS, kind="ResourceBundle")
        wanted = bundle_list.Wanted(question=asked.question(search.BUNDLES), page=asked.page, shown=shown)
        return bundle_list.BundleList(wanted, database=self._deps.database, streams=self._streams, on_stale=self._fill)

    async def _fill(self, ids: Sequence[str]) -> None:
        """Render, for the next reader, bundles that a Go server wrote."""
        # One at a time in a process: readers that come together would all render the same bundles.
        if self._filling:
            return
        self._filling = True
        try:
            await listing.fill_renditions(self._deps.database, ids)
        except errors.StoreError as error:
            self._deps.journal.warning(NOT_FILLED, {Key.COUNT: len(ids)}, err=error)
        finally:
            self._filling = False
