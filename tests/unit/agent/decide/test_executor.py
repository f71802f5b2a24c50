"""What is asked before a manifest is applied in someone's name."""

import pytest

from maestropy.agent.decide import executor
from maestropy.wire import options, status

WHO = options.Executor(type="ServiceAccount", namespace="ns1", name="runner")
CONFIG_MAP = status.ResourceMeta(ordinal=0, version="v1", resource="configmaps", name="cm1", namespace="ns1")
ROLE = status.ResourceMeta(
    ordinal=0, group="rbac.authorization.k8s.io", version="v1", resource="roles", name="r1", namespace="ns1"
)


@pytest.mark.parametrize(
    ("is_owned", "verbs"),
    [
        pytest.param(True, ["create", "update", "patch", "get", "delete"], id="case-61-owned-needs-delete"),
        pytest.param(False, ["create", "update", "patch", "get"], id="case-62-orphaned-needs-no-delete"),
    ],
)
def test_verbs(is_owned: bool, verbs: list[str]) -> None:
    asked = executor.questions(WHO, CONFIG_MAP, is_owned=is_owned)
    assert [review["spec"]["resourceAttributes"]["verb"] for review in asked.reviews] == verbs
    assert asked.dry_run_as == ""


def test_a_review_names_user_groups_and_object() -> None:
    (review, *_) = executor.questions(WHO, CONFIG_MAP, is_owned=True).reviews
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


def test_case_64_roles_are_tried_out_as_the_account() -> None:
    assert executor.questions(WHO, ROLE, is_owned=True).dry_run_as == "system:serviceaccount:ns1:runner"


@pytest.mark.parametrize(
    ("meta", "is_escalation", "expected"),
    [
        pytest.param(
            CONFIG_MAP,
            False,
            "not allowed to apply the resource  configmaps, ns1 cm1, will try again in 1m0s",
            id="case-58-core-group-leaves-two-spaces",
        ),
        pytest.param(
            ROLE,
            True,
            "not allowed to apply the resource rbac.authorization.k8s.io roles, ns1 r1, "
            "error: permission escalation, will try again in 1m0s",
            id="case-64-escalation",
        ),
    ],
)
def test_denial(meta: status.ResourceMeta, is_escalation: bool, expected: str) -> None:
    assert executor.denial(meta, is_escalation=is_escalation) == expected


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        pytest.param(WHO, "", id="fine"),
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
def test_problems(who: options.Executor, expected: str) -> None:
    assert executor.problem(who) == expected
