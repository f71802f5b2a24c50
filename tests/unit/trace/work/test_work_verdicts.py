from dataclasses import replace

import pytest
from traced_works import (
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
    gathered,
    row,
    status,
)

from maestropy.trace.output import Exit
from maestropy.trace.work import codes
from maestropy.trace.work.facts import Wish, establish
from maestropy.trace.work.model import (
    AppliedResource,
    Gathered,
    Json,
    ManifestReport,
    NestedWork,
    Owner,
    Sight,
    Tombstone,
)
from maestropy.trace.work.verdicts import Verdict, judge

DARK = Sight(place="cluster mgmt", is_clear=False, trouble="the login has expired: log in again", consumer="mgmt-1")
BLIND = Sight(place="database", is_clear=False, trouble="Cannot connect to database")
FAILED = status(
    conditions=conditions(applied="False"),
    manifests=(ManifestReport(key=KEY, conditions=conditions(applied="False", message="image: Required value")),),
)
LEFT = Tombstone(resource_id=WORK_ID, source="client", work_name="nginx-work", consumer="mgmt-1", created=NOW)
OTHER_HUB = replace(APPLIED, name=f"{'0' * 64}-{WORK_ID}", hub_hash="0" * 64)
EXTRA = AppliedResource(group="", version="v1", plural="secrets", namespace="default", name="extra", uid="u")
CONFIG: Json = {
    "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "default", "name": "nginx"},
    "updateStrategy": {"type": "ReadOnly"},
}
LEAVING = replace(LIVE, deleting=ago(hours=2), finalizers=("example.com/keep",))
SHARED = replace(LIVE, owners=(*LIVE.owners, Owner(group="work", kind="AppliedManifestWork", name="other", uid="o")))
NESTED = NestedWork(
    depth=1, cluster="mgmt", namespace="local-cluster", name="inner", manifests=(), status=None, applied=(), lives=()
)


def verdict(found: Gathered, wish: Wish | None = None) -> Verdict:
    return judge(establish(found, now=NOW, wish=wish or Wish()))


@pytest.mark.parametrize(
    ("found", "code", "exit_code"),
    [
        pytest.param(HEALTHY, "MW-001", Exit.HEALTHY, id="1-everything-there"),
        pytest.param(
            gathered(row=row(status=None, created=ago(seconds=30)), applied=(), lives=()),
            "MW-002",
            Exit.PROBLEM,
            id="2-young-and-unanswered",
        ),
        pytest.param(
            gathered(row=row(status=None, created=ago(seconds=601)), applied=(), lives=()),
            "MW-003",
            Exit.PROBLEM,
            id="3-old-and-unanswered",
        ),
        pytest.param(gathered(row=row(version=3)), "MW-004", Exit.PROBLEM, id="4-status-of-an-older-version"),
        pytest.param(gathered(row=row(status=FAILED)), "MW-005", Exit.PROBLEM, id="5-apply-failed"),
        pytest.param(gathered(applied=(), lives=(LIVE,)), "MW-006", Exit.PROBLEM, id="6-no-record-on-its-cluster"),
        pytest.param(
            gathered(row=row(deleted=ago(minutes=5)), applied=(replace(APPLIED, deleting=ago(minutes=5)),)),
            "MW-007",
            Exit.PROBLEM,
            id="7-deleting",
        ),
        pytest.param(
            gathered(row=row(deleted=ago(hours=2)), applied=(), lives=(ABSENT,)),
            "MW-008",
            Exit.PROBLEM,
            id="8-deletion-never-confirmed",
        ),
        pytest.param(gathered(row=None), "MW-009", Exit.PROBLEM, id="9-record-without-a-row"),
        pytest.param(gathered(row=None, applied=(), lives=()), "MW-010", Exit.NOT_FOUND, id="10-nobody-knows-it"),
        pytest.param(
            gathered(applied=(replace(APPLIED, resources=(*APPLIED.resources, EXTRA)),)),
            "MW-012",
            Exit.PROBLEM,
            id="12-more-applied-than-wanted",
        ),
        pytest.param(
            gathered(applied=(replace(APPLIED, resources=()),)),
            "MW-012",
            Exit.PROBLEM,
            id="12-less-applied-than-wanted",
        ),
        pytest.param(gathered(lives=(replace(LIVE, uid="uid-2"),)), "MW-013", Exit.PROBLEM, id="13-re-created"),
        pytest.param(
            gathered(clusters=(DARK,), applied=(), lives=()), "MW-100", Exit.INCONCLUSIVE, id="no-cluster-seen"
        ),
        pytest.param(gathered(clusters=(), applied=(), lives=()), "MW-100", Exit.INCONCLUSIVE, id="no-cluster-asked"),
        pytest.param(gathered(row=None, database=BLIND), "MW-100", Exit.INCONCLUSIVE, id="no-database"),
        pytest.param(
            gathered(row=None, database=BLIND, clusters=(DARK,), applied=(), lives=()),
            "MW-100",
            Exit.NO_ACCESS,
            id="nothing-seen-at-all",
        ),
        pytest.param(
            gathered(row=row(deleted=ago(minutes=1)), applied=(), lives=(ABSENT,)),
            "MW-101",
            Exit.PROBLEM,
            id="deleted-on-the-cluster-and-not-yet-confirmed",
        ),
        pytest.param(
            gathered(row=None, applied=(), lives=(), tombstones=(LEFT,)),
            "MW-102",
            Exit.NOT_FOUND,
            id="confirmed-deletion",
        ),
        pytest.param(
            gathered(clusters=(replace(CLUSTER, consumer="mgmt-2"),)),
            "MW-103",
            Exit.PROBLEM,
            id="applied-on-another-consumers-cluster",
        ),
        pytest.param(
            gathered(clusters=(replace(CLUSTER, consumer="mgmt-2"),), applied=(), lives=()),
            "MW-103",
            Exit.PROBLEM,
            id="only-another-consumers-cluster-was-asked",
        ),
        pytest.param(gathered(lives=(ABSENT,)), "MW-104", Exit.PROBLEM, id="object-gone"),
        pytest.param(gathered(row=row(status=None)), "MW-105", Exit.PROBLEM, id="applied-but-never-reported"),
        pytest.param(
            gathered(applied=(replace(APPLIED, deleting=ago(minutes=1)),)), "MW-106", Exit.PROBLEM, id="record-deleted"
        ),
        pytest.param(
            gathered(row=row(deleted=ago(hours=2)), lives=(LEAVING,)), "MW-107", Exit.PROBLEM, id="finalizer-blocks"
        ),
        pytest.param(
            gathered(applied=(replace(APPLIED, evicting=ago(minutes=1)),)), "MW-108", Exit.PROBLEM, id="evicting"
        ),
        pytest.param(gathered(applied=(APPLIED, OTHER_HUB)), "MW-109", Exit.PROBLEM, id="two-records"),
        pytest.param(gathered(lives=(SHARED,)), "MW-110", Exit.PROBLEM, id="two-owners"),
        pytest.param(
            gathered(row=row(status=status(conditions=conditions(available="False")))),
            "MW-111",
            Exit.PROBLEM,
            id="not-available",
        ),
        pytest.param(gathered(nested=(NESTED,)), "MW-113", Exit.PROBLEM, id="nested-work-not-applied"),
        pytest.param(gathered(lives=(LEAVING,)), "MW-114", Exit.PROBLEM, id="wanted-object-leaving"),
        pytest.param(
            gathered(applied=(replace(APPLIED, work_name="nginx-work", name=f"{APPLIED.hub_hash}-nginx-work"),)),
            "MW-001",
            Exit.HEALTHY,
            id="older-generation-of-names",
        ),
        pytest.param(gathered(row=row(id="chosen-by-a-client")), "MW-001", Exit.HEALTHY, id="id-of-a-raw-client"),
        pytest.param(
            gathered(row=row(configs=(CONFIG,)), applied=(replace(APPLIED, resources=()),), lives=(ABSENT,)),
            "MW-001",
            Exit.HEALTHY,
            id="a-read-only-manifest-need-not-exist",
        ),
        pytest.param(
            gathered(row=row(status=FAILED), applied=(), lives=(), clusters=(DARK,)),
            "MW-005",
            Exit.PROBLEM,
            id="a-known-failure-counts-more-than-a-dark-cluster",
        ),
    ],
)
def test_verdict(found: Gathered, code: str, exit_code: Exit) -> None:
    judged = verdict(found)
    assert (judged.code, judged.exit) == (code, exit_code), judged.findings


def test_an_apply_failure_quotes_the_api_server() -> None:
    says = [each.says for each in verdict(gathered(row=row(status=FAILED))).findings[0].evidence]
    assert says == ["Applied=False: image: Required value"]


def test_a_blocked_deletion_names_object_and_finalizer() -> None:
    found = verdict(gathered(row=row(deleted=ago(hours=2)), lives=(LEAVING,))).findings[0]
    assert any("example.com/keep" in each.says for each in found.evidence)
    assert found.advice[0] == (
        "kubectl --context mgmt get deployments.apps nginx -n default -o jsonpath='{.metadata.finalizers}'"
    )


def test_a_dark_side_is_told_with_its_remedy() -> None:
    found = verdict(gathered(clusters=(CLUSTER, replace(DARK, place="cluster mgmt-b", consumer=""))))
    assert any("log in again" in each.says for finding in found.findings for each in finding.evidence)


def test_another_consumers_dark_cluster_does_not_matter() -> None:
    found = verdict(gathered(clusters=(CLUSTER, replace(DARK, place="cluster mgmt-2", consumer="mgmt-2"))))
    assert found.code == "MW-001"


def test_the_hub_hash_is_checked_against_the_broker_given() -> None:
    assert verdict(HEALTHY, Wish(broker_host=BROKER)).code == "MW-001"
    assert verdict(HEALTHY, Wish(broker_host="elsewhere:1883")).code == "MW-117"


def test_live_objects_are_compared_only_on_demand() -> None:
    changed = replace(LIVE, content={**MANIFEST, "spec": {"replicas": 5}})
    assert verdict(gathered(lives=(changed,))).code == "MW-001"
    found = verdict(gathered(lives=(changed,)), Wish(compare=True))
    assert found.code == "MW-112"
    assert found.findings[0].evidence[0].says == "spec.replicas: wanted 2, found 5"


def test_commands_quote_what_strangers_chose() -> None:
    evil = "x; rm -rf /"
    found = verdict(gathered(row=replace(ROW, id=evil, version=9), applied=(replace(APPLIED, work_name=evil),)))
    advice = [each for finding in found.findings for each in finding.advice]
    assert any("'x; rm -rf /'" in each for each in advice)
    assert not any("--resource-id x;" in each for each in advice)


def test_every_code_explains_itself() -> None:
    for code, entry in codes.CATALOGUE.items():
        assert code == entry.code
        assert entry.cause.endswith(".")
        assert codes.explained(code).startswith(f"{code} ")
        assert entry.severity in {"error", "warn", "info"}
    assert [f"MW-{n:03d}" in codes.CATALOGUE for n in range(1, 14)] == [True] * 13


def test_values_under_test_are_consistent() -> None:
    assert STATUS.version == ROW.version
    assert DATABASE.is_clear
