"""Parse method and path of a request into a `RequestInfo`. Pure."""

from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInfo:
    """Verb, resource, namespace and name of one request for objects, as the API server's `RequestInfo`."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def qualified(self) -> str:
        """The resource with subresource and group: `deployments/status.apps`."""
        below = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{below}.{self.group}" if self.group else below


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


def parse(method: str, path: str, *, is_watch: bool = False) -> RequestInfo | None:
    """Return the parsed request; None if the path is not a resource path."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    # `/namespaces/x/finalize` addresses the namespace itself, `/namespaces/x/pods` the objects in it.
    is_namespace_subresource = len(rest) == 3 and rest[2] in ("status", "finalize")
    if rest[0] == "namespaces" and len(rest) > 2 and not is_namespace_subresource:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or not all(rest):
        return None
    resource, name, subresource = (*rest, "", "")[:3]
    return RequestInfo(
        verb=_verb(method, name, is_watch=is_watch),
        group=group,
        version=version,
        resource=resource,
        namespace=namespace,
        name=name,
        subresource=subresource,
    )


def _verb(method: str, name: str, *, is_watch: bool) -> str:
    if method in ("GET", "HEAD") and is_watch:
        return "watch"
    if method in ("GET", "HEAD") and not name:
        return "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())
