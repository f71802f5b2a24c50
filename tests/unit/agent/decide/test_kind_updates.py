"""Fields that an update enforces on kinds with other writers."""

import hashlib
from typing import Any

import pytest

from maestropy.agent.decide import kind_updates, update_strategy
from tests.unit.agent.decide.applied_objects import apply_input, config_map, live_object

RBAC = "rbac.authorization.k8s.io/v1"


def typed(kind: str, api_version: str = "v1", **members: Any) -> dict[str, Any]:
    metadata = {"name": "x"} | members.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | members


def replaced(manifest: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    action = update_strategy.decide(apply_input(manifest, live))
    assert isinstance(action, update_strategy.ReplaceObject)
    return dict(action.body)


@pytest.mark.parametrize("kind", ["Namespace", "Pod", "ServiceAccount"])
def test_only_metadata_is_enforced(kind: str) -> None:
    live = live_object(typed(kind, spec={"a": 1}))
    assert isinstance(
        update_strategy.decide(apply_input(typed(kind, spec={"a": 2}), live)), update_strategy.LeaveUnchanged
    )
    body = replaced(typed(kind, spec={"a": 2}, metadata={"labels": {"l": "1"}}), live)
    assert (body["spec"], body["metadata"]["labels"]) == ({"a": 1}, {"l": "1"})


def test_other_members_of_live_object_stay() -> None:
    live = live_object(config_map(data={"a": "1"}), immutable=False)
    body = replaced(config_map(data={"b": "2"}), live)
    assert (body["data"], body["immutable"]) == ({"b": "2"}, False)


def test_injected_ca_bundle_is_kept() -> None:
    manifest = config_map(data={"a": "1"}, metadata={"labels": {"config.openshift.io/inject-trusted-cabundle": "true"}})
    live = live_object({**manifest, "data": {"a": "1", "ca-bundle.crt": "PEM"}})
    assert isinstance(update_strategy.decide(apply_input(manifest, live)), update_strategy.LeaveUnchanged)
    changed = {**manifest, "data": {"a": "2"}}
    assert replaced(changed, live)["data"] == {"a": "2", "ca-bundle.crt": "PEM"}


def test_injected_service_ca_causes_no_update() -> None:
    annotations = {"service.beta.openshift.io/inject-cabundle": "true"}
    manifest = config_map(data={"a": "1"}, metadata={"annotations": annotations})
    live = live_object({**manifest, "data": {"a": "1", "service-ca.crt": "PEM"}})
    assert isinstance(update_strategy.decide(apply_input(manifest, live)), update_strategy.LeaveUnchanged)
    assert replaced({**manifest, "data": {"a": "2"}}, live)["data"] == {"a": "2"}


def test_secret_string_data_is_folded_into_data() -> None:
    manifest = typed("Secret", stringData={"token": "token"}, data={"k": "djE="})
    created = update_strategy.decide(apply_input(manifest, None))
    assert isinstance(created, update_strategy.CreateObject)
    assert created.body["data"] == {"k": "djE=", "token": "dG9rZW4="}
    assert "stringData" not in created.body


def test_secret_with_conflicting_data_is_rejected() -> None:
    manifest = typed("Secret", stringData={"k": "one"}, data={"k": "dHdv"})
    rejected = update_strategy.decide(apply_input(manifest, None))
    assert rejected == update_strategy.RejectManifest(problem='Secret.stringData["k"] conflicts with Secret.data["k"]')


def test_secret_of_other_type_is_recreated() -> None:
    live = live_object(typed("Secret", type="kubernetes.io/tls"))
    action = update_strategy.decide(apply_input(typed("Secret", data={"a": "MQ=="}), live))
    assert isinstance(action, update_strategy.RecreateObject)
    assert (action.uid, action.body["data"]) == ("uid-1", {"a": "MQ=="})


def test_service_account_token_keys_are_kept() -> None:
    kind = "kubernetes.io/service-account-token"
    live = live_object(typed("Secret", type=kind, data={"token": "eA=="}))
    assert replaced(typed("Secret", type=kind, data={"extra": "eQ=="}), live)["data"] == {
        "token": "eA==",
        "extra": "eQ==",
    }


def test_service_spec_is_replaced_when_hash_differs() -> None:
    manifest = typed("Service", spec={"ports": [{"port": 80}], "selector": {"app": "a"}})
    created = update_strategy.decide(apply_input(manifest, None))
    assert isinstance(created, update_strategy.CreateObject)
    value = created.body["metadata"]["annotations"][kind_updates.SPEC_HASH]
    spec = b'{"ports":[{"port":80,"targetPort":0}],"selector":{"app":"a"}}'
    assert value == hashlib.sha256(spec).hexdigest()
    live = live_object(
        dict(created.body), spec={"ports": [{"port": 80, "targetPort": 80}], "selector": {"app": "a"}, "clusterIP": "1"}
    )
    assert isinstance(update_strategy.decide(apply_input(manifest, live)), update_strategy.LeaveUnchanged)
    other = typed("Service", spec={"ports": [{"port": 81}], "selector": {"app": "a"}})
    assert replaced(other, live)["spec"] == {"ports": [{"port": 81}], "selector": {"app": "a"}}


@pytest.mark.parametrize(
    ("manifest", "live", "expected"),
    [
        pytest.param(
            typed("Role", RBAC, rules=[{"verbs": ["get"]}]), {"rules": []}, {"rules": [{"verbs": ["get"]}]}, id="role"
        ),
        pytest.param(
            typed("ClusterRole", RBAC, aggregationRule={"x": 1}, rules=[]),
            {"rules": [{"verbs": ["get"]}]},
            {"aggregationRule": {"x": 1}, "rules": [{"verbs": ["get"]}]},
            id="aggregated-role",
        ),
        pytest.param(
            typed("RoleBinding", RBAC, roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "u"}]),
            {},
            {
                "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}],
            },
            id="binding",
        ),
        pytest.param(
            typed(
                "ValidatingWebhookConfiguration",
                "admissionregistration.k8s.io/v1",
                webhooks=[{"name": "a", "clientConfig": {}}, {"name": "b", "clientConfig": {"caBundle": "mine"}}],
            ),
            {"webhooks": [{"name": "a", "clientConfig": {"caBundle": "injected"}}]},
            {
                "webhooks": [
                    {"name": "a", "clientConfig": {"caBundle": "injected"}},
                    {"name": "b", "clientConfig": {"caBundle": "mine"}},
                ]
            },
            id="webhooks-keep-injected-ca-bundle",
        ),
        pytest.param(
            typed("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1}),
            {"spec": {"minAvailable": 2}},
            {"spec": {"minAvailable": 1}},
            id="spec",
        ),
    ],
)
def test_enforced_members(manifest: dict[str, Any], live: dict[str, Any], expected: dict[str, Any]) -> None:
    live = live_object({**typed(manifest["kind"], manifest["apiVersion"]), **live})
    body = replaced(manifest, live)
    assert {name: body[name] for name in expected} == expected


def test_live_default_storage_class_annotation_wins() -> None:
    annotations = {kind_updates.DEFAULT_CLASS: "true"}
    manifest = typed("StorageClass", "storage.k8s.io/v1", provisioner="p", metadata={"annotations": annotations})
    live = live_object(
        {**manifest, "provisioner": "q"}, metadata={"annotations": {kind_updates.DEFAULT_CLASS: "false"}}
    )
    action = update_strategy.decide(apply_input(manifest, live))
    assert isinstance(action, update_strategy.ReplaceObject)
    assert action.should_recreate_if_immutable
    assert action.body["metadata"]["annotations"] == {kind_updates.DEFAULT_CLASS: "false"}
    assert action.body["provisioner"] == "p"


def test_csi_driver_with_changed_spec_is_recreated() -> None:
    manifest = typed("CSIDriver", "storage.k8s.io/v1", spec={"attachRequired": True})
    created = update_strategy.decide(apply_input(manifest, None))
    assert isinstance(created, update_strategy.CreateObject)
    live = live_object(dict(created.body))
    assert isinstance(update_strategy.decide(apply_input(manifest, live)), update_strategy.LeaveUnchanged)
    other = typed("CSIDriver", "storage.k8s.io/v1", spec={"attachRequired": False})
    assert isinstance(update_strategy.decide(apply_input(other, live)), update_strategy.RecreateObject)
