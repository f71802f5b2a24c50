"""What an update enforces on kinds that others write to as well."""

import hashlib
from typing import Any

import pytest
from applied_objects import config_map, living, wish

from maestropy.agent.decide import kinds, strategy

RBAC = "rbac.authorization.k8s.io/v1"


def typed(kind: str, api_version: str = "v1", **members: Any) -> dict[str, Any]:
    metadata = {"name": "x"} | members.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | members


def replaced(manifest: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    action = strategy.decide(wish(manifest, live))
    assert isinstance(action, strategy.Replace)
    return dict(action.body)


@pytest.mark.parametrize("kind", ["Namespace", "Pod", "ServiceAccount"])
def test_nothing_but_metadata_is_enforced(kind: str) -> None:
    live = living(typed(kind, spec={"a": 1}))
    assert isinstance(strategy.decide(wish(typed(kind, spec={"a": 2}), live)), strategy.Leave)
    body = replaced(typed(kind, spec={"a": 2}, metadata={"labels": {"l": "1"}}), live)
    assert (body["spec"], body["metadata"]["labels"]) == ({"a": 1}, {"l": "1"})


def test_other_members_of_the_living_object_stay() -> None:
    live = living(config_map(data={"a": "1"}), immutable=False)
    body = replaced(config_map(data={"b": "2"}), live)
    assert (body["data"], body["immutable"]) == ({"b": "2"}, False)


def test_an_injected_ca_bundle_survives() -> None:
    manifest = config_map(data={"a": "1"}, metadata={"labels": {"config.openshift.io/inject-trusted-cabundle": "true"}})
    live = living({**manifest, "data": {"a": "1", "ca-bundle.crt": "PEM"}})
    assert isinstance(strategy.decide(wish(manifest, live)), strategy.Leave)
    changed = {**manifest, "data": {"a": "2"}}
    assert replaced(changed, live)["data"] == {"a": "2", "ca-bundle.crt": "PEM"}


def test_an_injected_service_ca_is_no_reason_for_an_update() -> None:
    annotations = {"service.beta.openshift.io/inject-cabundle": "true"}
    manifest = config_map(data={"a": "1"}, metadata={"annotations": annotations})
    live = living({**manifest, "data": {"a": "1", "service-ca.crt": "PEM"}})
    assert isinstance(strategy.decide(wish(manifest, live)), strategy.Leave)
    assert replaced({**manifest, "data": {"a": "2"}}, live)["data"] == {"a": "2"}


def test_a_secret_folds_its_text_into_data() -> None:
    manifest = typed("Secret", stringData={"token": "token"}, data={"k": "djE="})
    created = strategy.decide(wish(manifest, None))
    assert isinstance(created, strategy.Create)
    assert created.body["data"] == {"k": "djE=", "token": "dG9rZW4="}
    assert "stringData" not in created.body


def test_a_secret_that_says_two_things_is_refused() -> None:
    manifest = typed("Secret", stringData={"k": "one"}, data={"k": "dHdv"})
    refused = strategy.decide(wish(manifest, None))
    assert refused == strategy.Refuse(problem='Secret.stringData["k"] conflicts with Secret.data["k"]')


def test_a_secret_of_another_type_is_made_anew() -> None:
    live = living(typed("Secret", type="kubernetes.io/tls"))
    action = strategy.decide(wish(typed("Secret", data={"a": "MQ=="}), live))
    assert isinstance(action, strategy.Recreate)
    assert (action.uid, action.body["data"]) == ("uid-1", {"a": "MQ=="})


def test_the_keys_of_an_account_token_stay() -> None:
    kind = "kubernetes.io/service-account-token"
    live = living(typed("Secret", type=kind, data={"token": "eA=="}))
    assert replaced(typed("Secret", type=kind, data={"extra": "eQ=="}), live)["data"] == {
        "token": "eA==",
        "extra": "eQ==",
    }


def test_a_service_is_replaced_when_its_hash_differs() -> None:
    manifest = typed("Service", spec={"ports": [{"port": 80}], "selector": {"app": "a"}})
    created = strategy.decide(wish(manifest, None))
    assert isinstance(created, strategy.Create)
    value = created.body["metadata"]["annotations"][kinds.SPEC_HASH]
    spec = b'{"ports":[{"port":80,"targetPort":0}],"selector":{"app":"a"}}'
    assert value == hashlib.sha256(spec).hexdigest()
    live = living(
        dict(created.body), spec={"ports": [{"port": 80, "targetPort": 80}], "selector": {"app": "a"}, "clusterIP": "1"}
    )
    assert isinstance(strategy.decide(wish(manifest, live)), strategy.Leave)
    other = typed("Service", spec={"ports": [{"port": 81}], "selector": {"app": "a"}})
    assert replaced(other, live)["spec"] == {"ports": [{"port": 81}], "selector": {"app": "a"}}


@pytest.mark.parametrize(
    ("manifest", "found", "expected"),
    [
        pytest.param(
            typed("Role", RBAC, rules=[{"verbs": ["get"]}]), {"rules": []}, {"rules": [{"verbs": ["get"]}]}, id="role"
        ),
        pytest.param(
            typed("ClusterRole", RBAC, aggregationRule={"x": 1}, rules=[]),
            {"rules": [{"verbs": ["get"]}]},
            {"aggregationRule": {"x": 1}, "rules": [{"verbs": ["get"]}]},
            id="case-81-the-cluster-computes-the-rules-of-an-aggregated-role",
        ),
        pytest.param(
            typed("RoleBinding", RBAC, roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "u"}]),
            {},
            {
                "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}],
            },
            id="case-23-binding",
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
            id="webhooks-keep-an-injected-bundle",
        ),
        pytest.param(
            typed("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1}),
            {"spec": {"minAvailable": 2}},
            {"spec": {"minAvailable": 1}},
            id="spec",
        ),
    ],
)
def test_enforced_members(manifest: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    live = living({**typed(manifest["kind"], manifest["apiVersion"]), **found})
    body = replaced(manifest, live)
    assert {name: body[name] for name in expected} == expected


def test_the_default_storage_class_is_chosen_by_the_cluster() -> None:
    annotations = {kinds.DEFAULT_CLASS: "true"}
    manifest = typed("StorageClass", "storage.k8s.io/v1", provisioner="p", metadata={"annotations": annotations})
    live = living({**manifest, "provisioner": "q"}, metadata={"annotations": {kinds.DEFAULT_CLASS: "false"}})
    action = strategy.decide(wish(manifest, live))
    assert isinstance(action, strategy.Replace)
    assert action.recreate_if_immutable
    assert action.body["metadata"]["annotations"] == {kinds.DEFAULT_CLASS: "false"}
    assert action.body["provisioner"] == "p"


def test_a_csi_driver_is_made_anew_when_its_spec_changes() -> None:
    manifest = typed("CSIDriver", "storage.k8s.io/v1", spec={"attachRequired": True})
    created = strategy.decide(wish(manifest, None))
    assert isinstance(created, strategy.Create)
    live = living(dict(created.body))
    assert isinstance(strategy.decide(wish(manifest, live)), strategy.Leave)
    other = typed("CSIDriver", "storage.k8s.io/v1", spec={"attachRequired": False})
    assert isinstance(strategy.decide(wish(other, live)), strategy.Recreate)
