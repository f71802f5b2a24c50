from dataclasses import replace

import pytest

from maestropy.trace.output import Exit
from maestropy.trace.work.judge.facts import Expectations, compute
from maestropy.trace.work.judge.verdicts import WorkVerdict, judge
from maestropy.trace.work.model import (
    AccessStatus,
    AppliedResourceEntry,
    AppliedWork,
    Json,
    ManifestReport,
    NestedWork,
    Owner,
    ReportedCondition,
    Status,
    Tombstone,
    WorkData,
    WorkHold,
)
from tests.unit.trace.work.traced_works import (
    ABSENT,
    APPLIED,
    BROKER,
    CLUSTER,
    DATABASE,
    HEALTHY,
    KEY,
    LIVE,
    MANIFEST,
    NOW,
    ROW,
    STATUS,
    WORK_ID,
    ago,
    conditions,
    data,
    row,
    status,
)

DARK = AccessStatus(
    description="cluster mgmt", is_readable=False, problem="the login has expired: log in again", consumer="mgmt-1"
)
BLIND = AccessStatus(description="database", is_readable=False, problem="Cannot connect to database")
EARLY = status(conditions=tuple(replace(condition, generation=1) for condition in conditions()))
"""A status of the newest version with the conditions of the one before, as a Go agent sends it before it applies."""
FAILED = status(
    conditions=conditions(applied="False"),
    manifests=(ManifestReport(key=KEY, conditions=conditions(applied="False", message="image: Required value")),),
)
LEFT = Tombstone(resource_id=WORK_ID, source="client", work_name="nginx-work", consumer="mgmt-1", created=NOW)
RELEASED = replace(LEFT, released="consumer mgmt-1 was retired by ada; the objects stay on its cluster")
OTHER_HUB = replace(APPLIED, name=f"{'0' * 64}-{WORK_ID}", hub_hash="0" * 64)
EXTRA = AppliedResourceEntry(group="", version="v1", plural="secrets", namespace="default", name="extra", uid="u")
CONFIG: Json = {
    "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "default", "name": "nginx"},
    "updateStrategy": {"type": "ReadOnly"},
}
LISTED = replace(APPLIED, resources=tuple(replace(resource, uid="") for resource in APPLIED.resources))
"""As our agent lists what it is about to apply."""
LEAVING = replace(LIVE, deleting=ago(hours=2), finalizers=("example.com/keep",))
SHARED = replace(LIVE, owners=(*LIVE.owners, Owner(group="work", kind="AppliedManifestWork", name="other", uid="o")))
NESTED = NestedWork(
    depth=1,
    cluster="mgmt",
    namespace="local-cluster",
    name="inner",
    manifests=(),
    status=None,
    applied=(),
    live_objects=(),
)


def verdict(found: WorkData, expectations: Expectations | None = None) -> WorkVerdict:
    return judge(compute(found, now=NOW, expectations=expectations or Expectations()))


@pytest.mark.parametrize(
    ("found", "code", "exit_code"),
    [
        pytest.param(HEALTHY, "MW-001", Exit.HEALTHY, id="1-everything-there"),
        pytest.param(
            data(row=row(status=None, created=ago(seconds=30)), applied=(), live_objects=()),
            "MW-002",
            Exit.PROBLEM,
            id="2-young-and-unanswered",
        ),
        pytest.param(
            data(row=row(status=None, created=ago(seconds=601)), applied=(), live_objects=()),
            "MW-003",
            Exit.PROBLEM,
            id="3-old-and-unanswered",
        ),
        pytest.param(data(row=row(version=3)), "MW-004", Exit.PROBLEM, id="4-status-of-an-older-version"),
        pytest.param(data(row=row(status=EARLY)), "MW-004", Exit.PROBLEM, id="4-conditions-of-an-older-version"),
        pytest.param(data(row=row(status=FAILED)), "MW-005", Exit.PROBLEM, id="5-apply-failed"),
        pytest.param(data(applied=(), live_objects=(LIVE,)), "MW-006", Exit.PROBLEM, id="6-no-record-on-its-cluster"),
        pytest.param(
            data(row=row(deleted=ago(minutes=5)), applied=(replace(APPLIED, deleting=ago(minutes=5)),)),
            "MW-007",
            Exit.PROBLEM,
            id="7-deleting",
        ),
        pytest.param(
            data(row=row(deleted=ago(hours=2)), applied=(), live_objects=(ABSENT,)),
            "MW-008",
            Exit.PROBLEM,
            id="8-deletion-never-confirmed",
        ),
        pytest.param(data(row=None), "MW-009", Exit.PROBLEM, id="9-record-without-a-row"),
        pytest.param(data(row=None, applied=(), live_objects=()), "MW-010", Exit.NOT_FOUND, id="10-nobody-knows-it"),
        pytest.param(
            data(applied=(replace(APPLIED, resources=(*APPLIED.resources, EXTRA)),)),
            "MW-012",
            Exit.PROBLEM,
            id="12-more-applied-than-wanted",
        ),
        pytest.param(
            data(applied=(replace(APPLIED, resources=()),)),
            "MW-012",
            Exit.PROBLEM,
            id="12-less-applied-than-wanted",
        ),
        pytest.param(data(live_objects=(replace(LIVE, uid="uid-2"),)), "MW-013", Exit.PROBLEM, id="13-re-created"),
        pytest.param(
            data(clusters=(DARK,), applied=(), live_objects=()), "MW-100", Exit.INCONCLUSIVE, id="no-cluster-seen"
        ),
        pytest.param(
            data(clusters=(), applied=(), live_objects=()), "MW-100", Exit.INCONCLUSIVE, id="no-cluster-asked"
        ),
        pytest.param(data(row=None, database=BLIND), "MW-100", Exit.INCONCLUSIVE, id="no-database"),
        pytest.param(
            data(row=None, database=BLIND, clusters=(DARK,), applied=(), live_objects=()),
            "MW-100",
            Exit.NO_ACCESS,
            id="nothing-seen-at-all",
        ),
        pytest.param(
            data(row=row(deleted=ago(minutes=1)), applied=(), live_objects=(ABSENT,)),
            "MW-101",
            Exit.PROBLEM,
            id="deleted-on-the-cluster-and-not-yet-confirmed",
        ),
        pytest.param(
            data(row=None, applied=(), live_objects=(), tombstones=(LEFT,)),
            "MW-102",
            Exit.NOT_FOUND,
            id="confirmed-deletion",
        ),
        pytest.param(
            data(row=None, applied=(), live_objects=(), tombstones=(RELEASED,)),
            "MW-124",
            Exit.NOT_FOUND,
            id="released",
        ),
        pytest.param(data(row=None, tombstones=(RELEASED,)), "MW-124", Exit.NOT_FOUND, id="released-and-still-applied"),
        pytest.param(data(row=None, tombstones=(LEFT,)), "MW-009", Exit.PROBLEM, id="confirmed-and-still-applied"),
        pytest.param(
            data(clusters=(replace(CLUSTER, consumer="mgmt-2"),)),
            "MW-103",
            Exit.PROBLEM,
            id="applied-on-another-consumers-cluster",
        ),
        pytest.param(
            data(clusters=(replace(CLUSTER, consumer="mgmt-2"),), applied=(), live_objects=()),
            "MW-103",
            Exit.PROBLEM,
            id="only-another-consumers-cluster-was-asked",
        ),
        pytest.param(
            data(
                row=row(status=None, created=ago(hours=2)),
                clusters=(replace(CLUSTER, consumer="mgmt-2"),),
                applied=(),
                live_objects=(),
            ),
            "MW-003",
            Exit.PROBLEM,
            id="never-reported-and-only-another-consumers-cluster-was-asked",
        ),
        pytest.param(data(live_objects=(ABSENT,)), "MW-104", Exit.PROBLEM, id="object-gone"),
        pytest.param(data(row=row(status=None)), "MW-105", Exit.PROBLEM, id="applied-but-never-reported"),
        pytest.param(
            data(applied=(replace(APPLIED, deleting=ago(minutes=1)),)), "MW-106", Exit.PROBLEM, id="record-deleted"
        ),
        pytest.param(
            data(row=row(deleted=ago(hours=2)), live_objects=(LEAVING,)), "MW-107", Exit.PROBLEM, id="finalizer-blocks"
        ),
        pytest.param(data(applied=(replace(APPLIED, evicting=ago(minutes=1)),)), "MW-108", Exit.PROBLEM, id="evicting"),
        pytest.param(data(applied=(APPLIED, OTHER_HUB)), "MW-109", Exit.PROBLEM, id="two-records"),
        pytest.param(data(live_objects=(SHARED,)), "MW-110", Exit.PROBLEM, id="two-owners"),
        pytest.param(
            data(row=row(status=status(conditions=conditions(available="False")))),
            "MW-111",
            Exit.PROBLEM,
            id="not-available",
        ),
        pytest.param(data(nested=(NESTED,)), "MW-113", Exit.PROBLEM, id="nested-work-not-applied"),
        pytest.param(data(live_objects=(LEAVING,)), "MW-114", Exit.PROBLEM, id="wanted-object-leaving"),
        pytest.param(
            data(applied=(replace(APPLIED, work_name="nginx-work", name=f"{APPLIED.hub_hash}-nginx-work"),)),
            "MW-001",
            Exit.HEALTHY,
            id="older-generation-of-names",
        ),
        pytest.param(data(row=row(id="chosen-by-a-client")), "MW-001", Exit.HEALTHY, id="id-of-a-raw-client"),
        pytest.param(
            data(row=row(configs=(CONFIG,)), applied=(replace(APPLIED, resources=()),), live_objects=(ABSENT,)),
            "MW-001",
            Exit.HEALTHY,
            id="a-read-only-manifest-need-not-exist",
        ),
        pytest.param(
            data(row=row(status=FAILED), applied=(), live_objects=(), clusters=(DARK,)),
            "MW-005",
            Exit.PROBLEM,
            id="a-known-failure-counts-more-than-a-dark-cluster",
        ),
    ],
)
def test_verdict(found: WorkData, code: str, exit_code: Exit) -> None:
    judged = verdict(found)
    assert (judged.code, judged.exit) == (code, exit_code), judged.findings


def _missing(
    message: str, *, group: str = "kitchen.example.com", kind: str = "Teapot", versions: tuple[str, ...] = ()
) -> WorkData:
    key = replace(KEY, group=group, kind=kind, plural="teapots")
    manifest = {**MANIFEST, "apiVersion": f"{group}/v1" if group else "v1", "kind": kind}
    failed = status(
        conditions=conditions(applied="False"),
        manifests=(ManifestReport(key=key, conditions=conditions(applied="False", message=message)),),
    )
    served = {(group, kind): versions} if versions else {}
    return data(row=row(status=failed, manifests=(manifest,)), applied=(), live_objects=(), versions=served)


OURS = 'Failed to apply manifest: the server doesn\'t have a resource type "Teapot"'
GO = 'Failed to apply manifest: no matches for kind "Teapot" in version "kitchen.example.com/v1"'


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        pytest.param(
            _missing(OURS), "The cluster has no kind Teapot in kitchen.example.com/v1: install ", id="our-agent"
        ),
        pytest.param(_missing(GO), "The cluster has no kind Teapot in kitchen.example.com/v1: install ", id="go-agent"),
        pytest.param(_missing(OURS, group="apps"), "The cluster has no kind Teapot in apps/v1: correct ", id="apps"),
        pytest.param(_missing(OURS, group=""), "The cluster has no kind Teapot in v1: correct ", id="core"),
        pytest.param(
            _missing(OURS, versions=("v1beta1", "v2")),
            "The cluster serves Teapot as kitchen.example.com/v1beta1, kitchen.example.com/v2, not as "
            "kitchen.example.com/v1: change the apiVersion",
            id="removed-version",
        ),
        pytest.param(
            _missing(OURS, group="", versions=("v2",)),
            "The cluster serves Teapot as v2, not as v1: ",
            id="core-version",
        ),
        pytest.param(
            _missing('Failed to apply manifest: namespaces "kitchen" not found'),
            "The namespace kitchen does not exist on the cluster: create it there, or put a manifest of kind Namespace "
            "into the work, before the objects",
            id="namespace",
        ),
        pytest.param(
            _missing(
                "not allowed to apply the resource kitchen.example.com teapots, default nginx, will try again in 1m0s"
            ),
            "The executor of the work may not write ",
            id="executor",
        ),
        pytest.param(_missing("image: Required value"), "Fix the manifest and send an update; ", id="another-reason"),
    ],
)
def test_apply_failure_names_what_the_cluster_does_not_have(found: WorkData, advice: str) -> None:
    assert verdict(found).findings[0].advice[0].startswith(advice)


def test_advice_names_the_log_files_of_a_system_on_this_computer() -> None:
    judged = judge(compute(_missing(OURS), now=NOW, expectations=Expectations(logs="/data/my logs")))
    assert judged.findings[0].advice[2:] == (
        "tail -n 500 '/data/my logs/agent-mgmt-1.log'",
        f"maestro trace request --resource-id {WORK_ID} '/data/my logs'",
    )


def test_executor_without_rights_needs_a_role_and_no_other_manifest() -> None:
    denied = "not allowed to apply the resource kitchen.example.com teapots, default nginx, will try again in 1m0s"
    advice = verdict(_missing(denied)).findings[0].advice
    assert advice[0].startswith(
        "The executor of the work may not write Teapot/default/nginx: on the cluster, bind a Role in namespace default "
        "with get, create, update, patch and delete on teapots.kitchen.example.com to the service account in "
    )
    assert not [text for text in advice if "the manifest" in text]


def test_apply_failure_quotes_the_api_server() -> None:
    says = [each.says for each in verdict(data(row=row(status=FAILED))).findings[0].evidence]
    assert says == ["Applied=False: image: Required value"]


def test_blocked_deletion_names_object_and_finalizer() -> None:
    found = verdict(data(row=row(deleted=ago(hours=2)), live_objects=(LEAVING,))).findings[0]
    assert any("example.com/keep" in each.says for each in found.evidence)
    assert found.advice[0].startswith("Start or repair the controller that the finalizer names.")
    assert found.advice[2] == (
        "kubectl --context mgmt get deployments.apps nginx -n default -o jsonpath='{.metadata.finalizers}'"
    )


def test_unreadable_cluster_is_reported_with_remedy() -> None:
    found = verdict(data(clusters=(CLUSTER, replace(DARK, description="cluster mgmt-b", consumer=""))))
    assert any("log in again" in each.says for finding in found.findings for each in finding.evidence)


def test_unreadable_cluster_of_another_consumer_is_ignored() -> None:
    found = verdict(data(clusters=(CLUSTER, replace(DARK, description="cluster mgmt-2", consumer="mgmt-2"))))
    assert found.code == "MW-001"


def test_hub_hash_is_checked_against_the_broker() -> None:
    assert verdict(HEALTHY, Expectations(broker_host=BROKER)).code == "MW-001"
    assert verdict(HEALTHY, Expectations(broker_host="elsewhere:1883")).code == "MW-117"


def test_live_objects_are_compared_only_on_demand() -> None:
    changed = replace(LIVE, content={**MANIFEST, "spec": {"replicas": 5}})
    assert verdict(data(live_objects=(changed,))).code == "MW-001"
    found = verdict(data(live_objects=(changed,)), Expectations(compare=True))
    assert found.code == "MW-112"
    assert found.findings[0].evidence[0].says == "spec.replicas: desired 2, actual 5"


def test_commands_quote_names() -> None:
    evil = "x; rm -rf /"
    found = verdict(data(row=replace(ROW, id=evil, version=9), applied=(replace(APPLIED, work_name=evil),)))
    advice = [each for finding in found.findings for each in finding.advice]
    assert any("'x; rm -rf /'" in each for each in advice)
    assert not any("--resource-id x;" in each for each in advice)


HOLD = WorkHold(
    consumer="mgmt-1", reason="OtherDatabase", message="applied from database d0", work_count=110,
    works=frozenset({WORK_ID}), since="2026-01-15T11:00:00Z",
)  # fmt: skip


def test_held_work_that_the_database_lacks_is_no_orphan() -> None:
    applied = replace(APPLIED, origin="d0")
    result = verdict(replace(HEALTHY, row=None, requested=WORK_ID, applied=(applied,), hold=HOLD))
    assert (result.code, result.name, int(result.exit)) == ("MW-122", "HELD", 1)
    assert {item.code for item in result.findings}.isdisjoint({"MW-009", "MW-010"})
    (held,) = (item for item in result.findings if item.code == "MW-122")
    assert any(advice.startswith("maestro consumer adopt mgmt-1 --dry-run") for advice in held.advice)
    says = " ".join(evidence.says for evidence in held.evidence)
    assert "OtherDatabase since 2026-01-15T11:00:00Z, 110 works" in says
    assert "applied from database d0" in says


def test_status_of_a_held_work_is_no_rejection_by_the_cluster() -> None:
    held = ReportedCondition(type="DataSafetyHold", status="True", reason="OlderVersion", message="version 1 after 2")
    status = replace(STATUS, conditions=(*conditions(applied="False"), held))
    result = verdict(replace(HEALTHY, row=replace(ROW, status=status)))
    assert result.code == "MW-122"
    assert "MW-005" not in {item.code for item in result.findings}
    ended = replace(held, status="False")
    status = replace(STATUS, conditions=(*conditions(applied="False"), ended))
    assert verdict(replace(HEALTHY, row=replace(ROW, status=status))).code == "MW-005"


def test_values_under_test_are_consistent() -> None:
    assert STATUS.version == ROW.version
    assert DATABASE.is_readable


@pytest.mark.parametrize(
    ("status", "listed", "expected"),
    [
        pytest.param(FAILED, LISTED, {"MW-005"}, id="never-applied"),
        pytest.param(FAILED, APPLIED, {"MW-005", "MW-104"}, id="applied-once-and-lost"),
        pytest.param(None, LISTED, {"MW-105"}, id="not-reported-yet"),
    ],
)
def test_object_that_was_never_applied_is_not_missing(
    status: Status | None, listed: AppliedWork, expected: set[str]
) -> None:
    judged = verdict(data(row=row(status=status), applied=(listed,), live_objects=(ABSENT,)))
    assert {found.code for found in judged.findings if found.severity == "error"} == expected
    assert judged.code == min(expected)


def test_object_that_is_reported_as_applied_is_missing_whatever_lists_it() -> None:
    applied = status(manifests=(ManifestReport(key=KEY, conditions=conditions()),))
    assert verdict(data(row=row(status=applied), applied=(LISTED,), live_objects=(ABSENT,))).code == "MW-104"


def test_fields_that_another_work_sets_are_no_drift() -> None:
    """The agent does not correct them: the owners' manifests have to be."""
    shared = replace(SHARED, content={**LIVE.content, "data": {"a": "other"}})
    found = verdict(data(live_objects=(shared,)), Expectations(compare=True))
    assert [item.code for item in found.findings] == ["MW-110"]
    assert any("desired" in item.says for item in found.findings[0].evidence)
    assert [text for text in found.findings[0].advice if text.startswith("maestro ")] == [
        "maestro trace work --applied-work other   # another owner"
    ]
