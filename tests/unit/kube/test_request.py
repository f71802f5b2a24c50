"""HTTP requests of the Kubernetes API, byte by byte, and rejected names."""

import json
from urllib.parse import unquote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from maestropy.kube import request
from maestropy.kube.errors import MalformedObject
from maestropy.kube.request import (
    ApiRequest,
    DeleteOptions,
    Impersonation,
    ListPage,
    ObjectSelector,
    Patch,
    PatchType,
    ResourceType,
    WatchStart,
    WriteOptions,
)

CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
DEPLOYMENTS = ResourceType(group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True)
CLUSTER_ROLES = ResourceType(
    group="rbac.authorization.k8s.io", version="v1", plural="clusterroles", kind="ClusterRole", namespaced=False
)
CM = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "cm"}, "data": {"a": "1"}}
ROLE = {"metadata": {"name": "system:x", "namespace": "ignored"}}


@pytest.mark.parametrize(
    ("api_request", "line"),
    [
        (request.get(CONFIG_MAPS, "cm", namespace="ns"), "GET /api/v1/namespaces/ns/configmaps/cm"),
        (
            request.get(DEPLOYMENTS, "d", namespace="ns", subresource="scale"),
            "GET /apis/apps/v1/namespaces/ns/deployments/d/scale",
        ),
        (
            request.get(CLUSTER_ROLES, "system:node", namespace="meaningless"),
            "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
        ),
        (request.list_objects(DEPLOYMENTS), "GET /apis/apps/v1/deployments"),
        (
            request.list_objects(
                DEPLOYMENTS,
                namespace="ns",
                selector=ObjectSelector(labels="a=b,c in (d, e)", fields="metadata.name=x"),
                page=ListPage(limit=2, token="t+/="),
            ),
            "GET /apis/apps/v1/namespaces/ns/deployments?labelSelector=a%3Db%2Cc%20in%20%28d%2C%20e%29&fieldSelector=metadata.name%3Dx&limit=2&continue=t%2B%2F%3D",  # noqa: E501
        ),
        (
            request.watch(CONFIG_MAPS, start=WatchStart(resource_version="7", seconds=9)),
            "GET /api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=9",
        ),
        (request.create(CONFIG_MAPS, CM), "POST /api/v1/namespaces/ns/configmaps"),
        (
            request.create(CLUSTER_ROLES, ROLE, write=WriteOptions(dry_run=True)),
            "POST /apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All",
        ),
        (
            request.create(CONFIG_MAPS, CM, write=WriteOptions(subresource="eviction")),
            "POST /api/v1/namespaces/ns/configmaps/cm/eviction",
        ),
        (
            request.update(CONFIG_MAPS, CM, write=WriteOptions(field_manager="me", subresource="status")),
            "PUT /api/v1/namespaces/ns/configmaps/cm/status?fieldManager=me",
        ),
        (
            request.patch(CONFIG_MAPS, "cm", namespace="ns", change=Patch(body={})),
            "PATCH /api/v1/namespaces/ns/configmaps/cm",
        ),
        (
            request.apply(CONFIG_MAPS, CM, write=WriteOptions(field_manager="work-agent")),
            "PATCH /api/v1/namespaces/ns/configmaps/cm?fieldManager=work-agent&force=false",
        ),
        (
            request.apply(CONFIG_MAPS, CM, write=WriteOptions(field_manager="w", force=True)),
            "PATCH /api/v1/namespaces/ns/configmaps/cm?fieldManager=w&force=true",
        ),
        (request.delete(CONFIG_MAPS, "cm", namespace="ns"), "DELETE /api/v1/namespaces/ns/configmaps/cm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_request_line(api_request: ApiRequest, line: str) -> None:
    assert f"{api_request.method} {api_request.target}" == line


@pytest.mark.parametrize(
    ("change", "content_type", "is_idempotent"),
    [
        (Patch(body={"a": None}), "application/merge-patch+json", True),
        (Patch(body=[{"op": "remove"}], type=PatchType.JSON), "application/json-patch+json", False),
        (Patch(body={"a": 1}, type=PatchType.STRATEGIC), "application/strategic-merge-patch+json", True),
        (Patch(body={"a": 1}, type=PatchType.APPLY), "application/apply-patch+yaml", True),
    ],
    ids=["merge", "json", "strategic", "apply"],
)
def test_patches(change: Patch, content_type: str, is_idempotent: bool) -> None:
    api_request = request.patch(CONFIG_MAPS, "cm", namespace="ns", change=change)
    assert api_request.headers == (("Content-Type", content_type),)
    assert json.loads(api_request.body or b"") == change.body
    assert api_request.is_idempotent is is_idempotent


def test_create_is_not_idempotent() -> None:
    assert not request.create(CONFIG_MAPS, CM).is_idempotent
    assert request.update(CONFIG_MAPS, CM).is_idempotent
    assert request.delete(CONFIG_MAPS, "cm", namespace="ns").is_idempotent


@pytest.mark.parametrize(
    ("deletion", "extra"),
    [
        (DeleteOptions(), {"propagationPolicy": "Background"}),
        (
            DeleteOptions(propagation="Foreground", uid="u", resource_version="5"),
            {"propagationPolicy": "Foreground", "preconditions": {"uid": "u", "resourceVersion": "5"}},
        ),
        (
            DeleteOptions(propagation="Orphan", grace_seconds=0, dry_run=True),
            {"propagationPolicy": "Orphan", "gracePeriodSeconds": 0, "dryRun": ["All"]},
        ),
    ],
    ids=["plain", "this-life-only", "at-once-dry"],
)
def test_delete_options(deletion: DeleteOptions, extra: dict[str, object]) -> None:
    api_request = request.delete(CONFIG_MAPS, "cm", namespace="ns", deletion=deletion)
    assert json.loads(api_request.body or b"") == {"apiVersion": "v1", "kind": "DeleteOptions"} | extra


def test_metadata_only_uses_partial_object_metadata() -> None:
    slim = ObjectSelector(metadata_only=True)
    listed = request.list_objects(CONFIG_MAPS, selector=slim)
    watched = request.watch(CONFIG_MAPS, selector=slim, start=WatchStart(resource_version="1", seconds=1))
    assert listed.headers == (("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),)
    assert watched.headers == (("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),)


def test_impersonation() -> None:
    identity = Impersonation(
        user="system:serviceaccount:ns:sa", groups=("system:serviceaccounts", "system:authenticated")
    )
    headers = request.create(CONFIG_MAPS, CM, write=WriteOptions(impersonate=identity)).headers
    assert headers[1:] == (
        ("Impersonate-User", "system:serviceaccount:ns:sa"),
        ("Impersonate-Group", "system:serviceaccounts"),
        ("Impersonate-Group", "system:authenticated"),
    )
    with pytest.raises(MalformedObject, match="impersonate"):
        request.create(CONFIG_MAPS, CM, write=WriteOptions(impersonate=Impersonation(user="a\r\nX-Evil: 1")))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "metadata.name is missing"),
        ("..", "one segment"),
        (".", "one segment"),
        ("../secrets/x", "one segment"),
        ("a%2fb", "one segment"),
    ],
)
def test_name_that_addresses_another_path_is_rejected(name: str, message: str) -> None:
    with pytest.raises(MalformedObject, match=message):
        request.get(CONFIG_MAPS, name, namespace="ns")
    if name:
        with pytest.raises(MalformedObject, match=r"metadata\.namespace"):
            request.get(CONFIG_MAPS, "x", namespace=name)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"metadata": {"name": "cm"}}, r"metadata\.namespace is missing: configmaps live in namespaces"),
        ({"metadata": {"namespace": "ns"}}, r"metadata\.name is missing"),
        ({"metadata": {"namespace": "ns", "name": 7}}, r"metadata\.name must be a string"),
        ({"metadata": []}, "metadata must be an object"),
        ({}, r"metadata\.namespace is missing"),
        ({"metadata": {"namespace": "ns", "name": "a"}, "n": 2**70}, "cannot be written as JSON"),
    ],
    ids=["no-namespace", "no-name", "number", "list", "empty", "huge-number"],
)
def test_manifest_without_address_is_rejected(manifest: dict[str, object], message: str) -> None:
    with pytest.raises(MalformedObject, match=message):
        request.update(CONFIG_MAPS, manifest)


def test_create_without_namespace_is_rejected() -> None:
    with pytest.raises(MalformedObject, match=r"metadata\.namespace"):
        request.create(CONFIG_MAPS, {"metadata": {"name": "cm"}})


def test_apply_needs_a_field_manager() -> None:
    with pytest.raises(MalformedObject, match="fieldManager"):
        request.apply(CONFIG_MAPS, CM, write=WriteOptions())


@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text not in {".", ".."}))
def test_other_names_are_unchanged(name: str) -> None:
    if "/" in name or "%" in name:
        return
    path = request.get(CONFIG_MAPS, name, namespace="ns").path
    assert path.isascii()
    assert path.count("/") == 6
    assert unquote(path.rpartition("/")[2]) == name


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"))))
def test_applied_object_is_the_same_as_json_and_yaml(data: dict[str, str]) -> None:
    body = request.encode_as_yaml({"data": data})
    assert json.loads(body) == {"data": data}
    if all(len(key) < 100 for key in data):  # YAML readers bound the length of a key
        assert yaml.safe_load(body.decode()) == {"data": data}


def test_yaml_line_breaks_inside_strings_survive() -> None:
    data = {"data": {"k": "a\u0085b\u2028c\x7fd\ufeffe"}}
    assert yaml.safe_load(request.encode_as_yaml(data)) == data


def test_secrets_stay_out_of_repr() -> None:
    assert "s3cret" not in repr(request.create(CONFIG_MAPS, CM | {"data": {"k": "s3cret"}}))
