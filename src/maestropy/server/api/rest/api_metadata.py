"""Serve the metadata of the API: versions, errors and the OpenAPI document."""

from importlib import resources
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from maestropy.server.api.rest import list_parameters, representations
from maestropy.server.api.rest.http import error_catalogue
from maestropy.server.api.rest.http import errors as rest_errors

_API: Final = {
    "id": "maestro",
    "href": "/api/maestro",
    "kind": "API",
    "versions": [{"id": "v1", "href": representations.BASE, "kind": "", "collections": None}],
}
# The listed collection does not exist, in the Go server neither; clients compare the document.
_VERSION: Final = {
    "id": "v1",
    "href": representations.BASE,
    "kind": "APIVersion",
    "collections": [{"id": "resources", "href": f"{representations.BASE}/resources", "kind": "ResourceList"}],
}
_OPENAPI: Final = (resources.files("maestropy.server.api.rest") / "openapi.json").read_bytes()


async def api(_: Request) -> ASGIApp:
    """Return the versions of the API."""
    return representations.response(msgspec.json.encode(_API))


async def version(_: Request) -> ASGIApp:
    """Return the metadata of version 1."""
    return representations.response(msgspec.json.encode(_VERSION))


async def openapi(_: Request) -> ASGIApp:
    """Return the OpenAPI document."""
    return representations.response(_OPENAPI)


async def errors(request: Request) -> ASGIApp:
    """Return the list of error kinds."""
    parameters = list_parameters.read(request.query_params)
    kinds = error_catalogue.ALL[parameters.offset : parameters.offset + parameters.size]
    items = [msgspec.json.encode(kind.body()) for kind in kinds]
    body = representations.whole_list(items, kind="ErrorList", page=parameters.page, total=len(error_catalogue.ALL))
    return representations.response(body)


async def error(request: Request) -> ASGIApp:
    """Return one error kind."""
    key = request.path_params["id"]
    kind = error_catalogue.find(key)
    if kind is None:
        raise rest_errors.RestError(error_catalogue.NOT_FOUND, f"No error with id {rest_errors.shorten(key)} exists")
    return representations.response(msgspec.json.encode(kind.body()))
