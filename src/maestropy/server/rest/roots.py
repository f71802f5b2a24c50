"""The pages about the API itself: what there is, what can go wrong, and the OpenAPI document."""

from importlib import resources
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from maestropy.server.rest import catalogue, parameters, problems, views

_API: Final = {
    "id": "maestro",
    "href": "/api/maestro",
    "kind": "API",
    "versions": [{"id": "v1", "href": views.BASE, "kind": "", "collections": None}],
}
# The one collection listed is not there, in the reference either; clients compare the document, none follows it.
_VERSION: Final = {
    "id": "v1",
    "href": views.BASE,
    "kind": "APIVersion",
    "collections": [{"id": "resources", "href": f"{views.BASE}/resources", "kind": "ResourceList"}],
}
_OPENAPI: Final = (resources.files("maestropy.server.rest") / "openapi.json").read_bytes()


async def api(_: Request) -> ASGIApp:
    """Show which versions there are."""
    return views.response(msgspec.json.encode(_API))


async def version(_: Request) -> ASGIApp:
    """Show what version 1 holds."""
    return views.response(msgspec.json.encode(_VERSION))


async def openapi(_: Request) -> ASGIApp:
    """Show the OpenAPI document."""
    return views.response(_OPENAPI)


async def errors(request: Request) -> ASGIApp:
    """Show the kinds of errors."""
    asked = parameters.read(request.query_params)
    kinds = catalogue.ALL[asked.offset : asked.offset + asked.size]
    items = [msgspec.json.encode(kind.body()) for kind in kinds]
    body = views.whole_list(items, kind="ErrorList", page=asked.page, total=len(catalogue.ALL))
    return views.response(body)


async def error(request: Request) -> ASGIApp:
    """Show one kind of error."""
    key = request.path_params["id"]
    kind = catalogue.find(key)
    if kind is None:
        raise problems.Problem(catalogue.NOT_FOUND, f"No error with id {problems.shorten(key)} exists")
    return views.response(msgspec.json.encode(kind.body()))
