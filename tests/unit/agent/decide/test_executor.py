"""Access reviews before a manifest is applied for an executor."""

import pytest

from maestropy.agent.decide import executor
from maestropy.wire.works import options, status

EXECUTOR = options.Executor(type="ServiceAccount", namespace="ns1", name="runner")
CONFIG_MAP = status.ResourceMeta(ordinal=0, version="v1", resource="configmaps", name="cm1", namespace="ns1")
ROLE = status.ResourceMeta(
    ordinal=0, group="rbac.authorization.k8s.io", version="v1", resource="roles", name="r1", namespace="ns1"
)


@pytest.mark.parametrize(
    ("is_owned", "verbs"),
    [
        pytest.param(True, ["create", "update", "patch", "get", "delete"], id="owned-needs-delete"),
        pytest.param(False, ["create", "update", "patch", "get"], id="orphaned-needs-no-delete"),
    ],
)
def test_reviewed_verbs(is_owned: bool, verbs: list[str]) -> None:
    checks = executor.access_checks(EXECUTOR, CONFIG_MAP, is_owned=is_owned)
    assert [review["spec"]["resourceAttributes"]["verb"] for review in checks.reviews] == verbs
    assert checks.dry_run_as == ""


def test_review_names_user_groups_and_object() -> None:
    (review, *_) = executor.access_checks(EXECUTOR, CONFIG_MAP, is_owned=True).reviews
    assert review["spec"] == {
        "user": "system:serviceaccount:ns1:runner",
        "groups": ["system:serviceaccounts", "system:authenticated", "system:serviceaccounts:ns1"],
        "resourceAttributes": {
            "verb": "create",
            "group": "",
            "version": "v1",
            "resource": "configmaps",
            "namespace": "ns1",
            "name": "cm1",
        },
    }


def test_rbac_objects_need_dry_run_as_executor() -> None:
    assert executor.access_checks(EXECUTOR, ROLE, is_owned=True).dry_run_as == "system:serviceaccount:ns1:runner"


@pytest.mark.parametrize(
    ("meta", "is_escalation", "expected"),
    [
        pytest.param(
            CONFIG_MAP,
            False,
            "not allowed to apply the resource  configmaps, ns1 cm1, will try again in 1m0s",
            id="core-group-leaves-two-spaces",
        ),
        pytest.param(
            ROLE,
            True,
            "not allowed to apply the resource rbac.authorization.k8s.io roles, ns1 r1, "
            "error: permission escalation, will try again in 1m0s",
            id="escalation",
        ),
    ],
)
def test_denial_message(meta: status.ResourceMeta, is_escalation: bool, expected: str) -> None:
    assert executor.denial(meta, is_escalation=is_escalation) == expected


@pytest.mark.parametrize(
    ("service_account", "expected"),
    [
        pytest.param(EXECUTOR, "", id="fine"),
        pytest.param(
            options.Executor(type="User", namespace="n", name="x"),
            "only support ServiceAccount type for the executor",
            id="type",
        ),
        pytest.param(
            options.Executor(type="ServiceAccount", namespace="", name=""),
            "the executor service account is nil",
            id="no-account",
        ),
    ],
)
def test_invalid_executor(service_account: options.Executor, expected: str) -> None:
    assert executor.problem(service_account) == expected
