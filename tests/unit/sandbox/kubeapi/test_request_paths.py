"""Method and path of a request give its RequestInfo."""

import pytest

from maestropy.sandbox.kubeapi import request_paths


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/namespaces", ("list", "", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "", "", "namespaces", "a", "")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "", "namespaces", "a", "finalize")),
        ("POST", "/api/v1/namespaces/a/pods", ("create", "", "a", "pods", "", "")),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments", ("deletecollection", "apps", "a", "deployments", "", "")),
        ("PATCH", "/apis/apps/v1/namespaces/a/sets/d/status", ("patch", "apps", "a", "sets", "d", "status")),
        ("GET", "/apis/apps/v1/deployments", ("list", "apps", "", "deployments", "", "")),
        ("GET", "/api/v1/namespaces/a/configmaps/x%2Fy", ("get", "", "a", "configmaps", "x/y", "")),
    ],
)  # fmt: skip
def test_request_path(method: str, path: str, expected: tuple[str, ...]) -> None:
    info = request_paths.parse(method, path)
    assert info is not None
    assert (info.verb, info.group, info.namespace, info.resource, info.name, info.subresource) == expected


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis/apps/v1", "/version", "/apis/a/b/c/d/e/f/g"])
def test_path_without_resource(path: str) -> None:
    assert request_paths.parse("GET", path) is None
