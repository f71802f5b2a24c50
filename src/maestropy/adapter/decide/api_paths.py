"""Compute the paths of resources in the HyperFleet API. Pure."""

from urllib.parse import urlsplit

from maestropy.adapter.event import Event

ROOT = "/api/hyperfleet/v1"
_PLURALS = {"Cluster": "clusters", "NodePool": "nodepools"}


def path_of(event: Event) -> str:
    """Return the API path of the resource of an event."""
    if event.href:
        return event.href if event.href.startswith("/") else urlsplit(event.href).path
    if event.kind == "NodePool" and event.owner_id:
        return f"{ROOT}/clusters/{event.owner_id}/nodepools/{event.resource_id}"
    return f"{ROOT}/{_PLURALS.get(event.kind, 'resources')}/{event.resource_id}"


def full_path(url: str) -> str:
    """Return the path of a URL that a task gives; the root may be left out there.

    >>> full_path("/clusters/abc")
    '/api/hyperfleet/v1/clusters/abc'
    """
    path = urlsplit(url).path if "://" in url else f"/{url.lstrip('/')}"
    return path if path.startswith("/api/") else f"{ROOT}{path}"
