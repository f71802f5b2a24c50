"""Rules about servers, agents, broker, database, clocks and certificates; the order of findings; comparisons."""

import json
from pathlib import Path
from typing import Any

import pytest

from maestropy.diagnose import manifest
from maestropy.diagnose.analysis import diff, report
from maestropy.trace.exit_codes import Exit
from maestropy.trace.findings.codes import CODES
from tests.unit.diagnose.archives import NOW, analysed, lines, of_files, row

POD = {"kind": "Pod", "metadata": {"name": "agent-1"}, "status": {"phase": "Running", "conditions": [],
       "containerStatuses": [{"name": "agent", "ready": False, "restartCount": 7,
                              "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}  # fmt: skip
READY = {**POD, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
RIGHT = {
    "trace": "right",
    "user": "system:serviceaccount:a:b",
    "verb": "patch",
    "resource": "secrets",
    "allowed": False,
}


def entry(kind: str, time: str) -> dict[str, Any]:
    return {"trace": "history", "kind": kind, "consumer_name": "c1", "time": time}


def agents(*, works: int, connected: int) -> str:
    return f"maestropy_consumers_with_works {works}\nmaestropy_consumers_with_works_connected {connected}\n"


@pytest.mark.parametrize(
    ("code", "bad", "good"),
    [
        ("MD-101", {"server/endpoint-1.health.txt": "[-]database failed: gone\n"},
         {"server/endpoint-1.health.txt": "[+]database ok\n"}),
        ("MD-102", {"database/instances.jsonl": lines({"id": "i", "heartbeat_age_seconds": 90})},
         {"database/instances.jsonl": lines({"id": "i", "heartbeat_age_seconds": 9})}),
        ("MD-103", {"database/instances.jsonl": lines({"id": "i", "heartbeat_age_seconds": 9},
                                                      {"id": "j", "heartbeat_age_seconds": 99})},
         {"database/instances.jsonl": lines({"id": "i", "heartbeat_age_seconds": 9})}),
        ("MD-201", {"database/history.jsonl": lines(entry("agent.disconnected", "2"), entry("agent.connected", "1"))},
         {"server/history.jsonl": lines(entry("agent.connected", "2"), entry("agent.disconnected", "1"))}),
        ("MD-202", {"clusters/c1/agent.jsonl": lines(POD)}, {"clusters/c1/agent.jsonl": lines(READY)}),
        ("MD-203", {"clusters/c1/rights.jsonl": lines(RIGHT)},
         {"clusters/c1/rights.jsonl": lines({**RIGHT, "allowed": True})}),
        ("MD-204", {"server/endpoint-1.metrics.txt": agents(works=3, connected=2)},
         {"server/endpoint-1.metrics.txt": agents(works=3, connected=3)}),
        ("MD-301", {"server/endpoint-1.metrics.txt": 'maestropy_broker_connected{broker="mqtt"} 0\n'},
         {"server/endpoint-1.metrics.txt": 'maestropy_broker_connected{broker="mqtt"} 1\n'}),
        ("MD-302", {"server/broker.jsonl": lines({"name": "message-broker", "outcome": "failed"})},
         {"server/broker.jsonl": lines({"name": "message-broker", "outcome": "ok"})}),
        ("MD-303", {"server/broker.jsonl": lines({"name": "broker-topics", "outcome": "failed"})},
         {"server/broker.jsonl": lines({"name": "broker-topics", "outcome": "ok"})}),
        ("MD-304", {"server/broker.jsonl": lines({"name": "broker-dropped", "outcome": "warning"})},
         {"server/broker.jsonl": lines({"name": "broker-state", "outcome": "ok"})}),
        ("MD-305", {"server/broker.jsonl": lines({"name": "broker-clients", "outcome": "warning"})},
         {"server/broker.jsonl": lines({"name": "broker-state", "outcome": "not seen"})}),
        ("MD-306", {"server/broker.jsonl": lines({"name": "topic sourceevents", "outcome": "failed"})},
         {"server/broker.jsonl": lines({"name": "topic sourceevents", "outcome": "not seen"})}),
        ("MD-307", {"server/broker.jsonl": lines({"name": "subscription agentevents-m", "outcome": "warning"})},
         {"server/broker.jsonl": lines({"name": "subscription agentevents-m", "outcome": "ok"})}),
        ("MD-401", {"database/pending_events.jsonl": lines({"resource_id": "r", "age_seconds": 1000})},
         {"database/pending_events.jsonl": lines({"resource_id": "r", "age_seconds": 100})}),
        ("MD-402", {"server/endpoint-1.metrics.txt": "maestropy_database_up 0\n"},
         {"server/endpoint-1.metrics.txt": "maestropy_database_up 1\nmaestropy_database_read_only 0\n"}),
        ("MD-402", {"database/facts.jsonl": lines({"is_in_recovery": True})}, {"database/facts.jsonl": lines({})}),
        ("MD-403", {"database/facts.jsonl": lines({"connections": 95, "max_connections": 100})},
         {"database/facts.jsonl": lines({"connections": 50, "max_connections": 100})}),
        ("MD-404", {"database/facts.jsonl": lines({"invalid_indexes": ["i"]})},
         {"database/facts.jsonl": lines({"invalid_indexes": None})}),
        ("MD-501", {"database/holds.jsonl": lines({"trace": "hold", "consumer_name": "c1", "work_count": 2})},
         {"database/holds.jsonl": ""}),
        ("MD-601", {"clusters/c1/cluster.jsonl": lines({"label": "c1", "ahead_seconds": -60})},
         {"clusters/c1/cluster.jsonl": lines({"label": "c1", "ahead_seconds": 3})}),
        ("MD-601", {"database/facts.jsonl": lines({"time": 100, "collector_time": 200})},
         {"database/facts.jsonl": lines({"time": 199, "collector_time": 200})}),
        ("MD-602", {"server/rest.certificate.jsonl": lines({"not_after": "2026-08-20T10:00:00+00:00"})},
         {"server/rest.certificate.jsonl": lines({"not_after": "2027-08-20T10:00:00+00:00"})}),
        ("MD-603", {"server/rest.certificate.jsonl": lines({"not_after": "2026-08-30T10:00:00"})},
         {"server/rest.certificate.jsonl": lines({"not_after": "no date"})}),
    ],
)  # fmt: skip
def test_rule_finds_what_is_wrong_and_nothing_else(
    tmp_path: Path, code: str, bad: dict[str, str], good: dict[str, str]
) -> None:
    found = analysed(of_files(tmp_path / "bad.tar.zst", bad))
    assert [item.code for item in found.findings] == [code]
    paths = {name.partition(":")[0] for item in found.findings for name in [item.finding.evidence[0].where]}
    assert paths <= set(bad)
    assert found.exit is (Exit.PROBLEM if CODES[code].exit is Exit.PROBLEM else Exit.INCONCLUSIVE)
    assert analysed(of_files(tmp_path / "good.tar.zst", good)).findings == ()


def test_agent_with_an_open_connection_is_connected_and_only_consumers_that_exist_are_named(tmp_path: Path) -> None:
    consumers = lines({"name": "c1"}, {"name": "c2"})
    overlap = [entry("agent.disconnected", "3"), entry("agent.connected", "2"), entry("agent.connected", "1")]
    stranger = [{**entry(f"agent.{kind}", "4"), "consumer_name": "typo"} for kind in ("disconnected", "connected")]
    files = {"database/history.jsonl": lines(*stranger, *overlap), "database/consumers.jsonl": consumers}
    assert analysed(of_files(tmp_path / "a.tar.zst", files)).findings == ()
    ended = [{**entry("agent.disconnected", "1"), "consumer_name": "c2"}]
    files["database/history.jsonl"] = lines(*ended, *stranger)
    titles = [item.finding.title for item in analysed(of_files(tmp_path / "b.tar.zst", files)).findings]
    assert titles == ["The agent of c2 is not connected."]


def test_agent_that_left_after_a_server_was_killed_is_not_connected(tmp_path: Path) -> None:
    begins = [entry("agent.connected", "2026-08-20T10:00:00Z"), entry("agent.connected", "2026-08-20T09:00:00Z")]
    files = {"database/history.jsonl": lines(entry("agent.disconnected", "2026-08-20T11:00:00Z"), *begins)}
    assert [item.code for item in analysed(of_files(tmp_path / "a.tar.zst", files)).findings] == ["MD-201"]


def test_findings_are_ranked_causes_first_and_many_works_are_one_finding(tmp_path: Path) -> None:
    rows = [row(number, applied="False", message="denied") for number in range(30)]
    files = {
        "database/rows.jsonl": lines(*rows),
        "server/endpoint-1.metrics.txt": "maestropy_database_up 0\nmaestropy_clock_skew_seconds 99\n",
        "clusters/c1/rights.jsonl": lines(RIGHT),
    }
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files))
    codes = [item.code for item in analysis.findings]
    assert codes[:2] == ["MD-402", "MD-203"]
    works = next(item for item in analysis.findings if item.code == "MW-005")
    assert len(works.subjects) == 30
    assert works.headline.startswith("work work-0 of c1, work work-1 of c1, work work-2 of c1 and 27 more: ")
    assert codes.index("MW-005") < codes.index("MD-601")
    assert any(evidence.where == "database/rows.jsonl:1" for evidence in works.finding.evidence)


def applied_work(number: int) -> dict[str, Any]:
    resource = {"group": "", "version": "v1", "resource": "configmaps", "namespace": "d", "name": f"cm-{number}"}
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "metadata": {"name": f"{'a' * 64}-id-{number}", "uid": "u"},
        "spec": {"hubHash": "a" * 64, "manifestWorkName": f"id-{number}"},
        "status": {"appliedResources": [{**resource, "uid": f"u{number}"}]},
    }


def live_object(number: int) -> dict[str, Any]:
    owner = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "uid": "u"}
    metadata = {"name": f"cm-{number}", "namespace": "d", "uid": f"u{number}"}
    owners = [{**owner, "name": f"{'a' * 64}-id-{number}"}]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "trace_plural": "configmaps",
        "metadata": {**metadata, "ownerReferences": owners},
    }


def test_cluster_without_access_leaves_its_works_unknown_and_judges_the_others(tmp_path: Path) -> None:
    about = manifest.Manifest(
        collected_at=NOW,
        sections=[
            manifest.Section(name="cluster m3", state="failed", reason="login expired"),
            manifest.Section(name="works", state="collected"),
        ],
        clusters=[
            manifest.Cluster(label="m1", folder="m1", consumer="c1"),
            manifest.Cluster(label="m2", folder="m2", consumer="c2"),
            manifest.Cluster(label="m3", folder="m3", consumer="c3", problem="login expired"),
        ],
    )
    rows = [row(number, consumer=f"c{number}") for number in (1, 2, 3, 4)]
    files = {
        "database/rows.jsonl": lines(*rows),
        "clusters/m1/objects.jsonl": lines(applied_work(1), live_object(1)),
        "clusters/m2/objects.jsonl": lines(applied_work(2), live_object(2)),
    }
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files, about=about))
    assert {work.id: work.code for work in analysis.works} == {
        "id-1": "MW-001",
        "id-2": "MW-001",
        "id-3": "MW-100",
        "id-4": "MW-100",
    }
    assert analysis.exit is Exit.INCONCLUSIVE
    assert "cluster m3 (failed): login expired" in analysis.unknown
    shown = report.text(analysis, most=20)
    assert "cluster m3: login expired" in shown
    assert "cluster of c4: was not collected" in shown


def test_cluster_that_is_given_for_two_consumers_has_each_applied_work_once(tmp_path: Path) -> None:
    content = lines(applied_work(1), live_object(1))
    files = {"database/rows.jsonl": lines(row(1)), **{f"clusters/m{n}/objects.jsonl": content for n in (1, 2)}}
    clusters = [manifest.Cluster(label=f"m{n}", folder=f"m{n}", consumer=f"c{3 - n}") for n in (1, 2)]
    about = manifest.Manifest(
        collected_at=NOW, sections=[manifest.Section(name="works", state="collected")], clusters=clusters
    )
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files, about=about))
    assert [(work.id, work.code) for work in analysis.works] == [("id-1", "MW-001")]
    assert analysis.findings == ()


def test_applied_work_without_a_row_is_an_orphan_only_if_all_works_were_collected(tmp_path: Path) -> None:
    applied = [
        {"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
         "metadata": {"name": f"{hub * 64}-{name}", "uid": "u"},
         "spec": {"hubHash": hub * 64, "manifestWorkName": name}}
        for hub, name in (("a", "id-1"), ("a", "lost"), ("b", "of-another-hub"))
    ]  # fmt: skip
    files = {"database/rows.jsonl": lines(row(1)), "clusters/m1/appliedmanifestworks.jsonl": lines(*applied)}
    clusters = [manifest.Cluster(label="m1", folder="m1", consumer="c1")]
    for state, expected in (("collected", {"id-1", "lost"}), ("partial", {"id-1"})):
        section = manifest.Section(name="works", state=state)  # type: ignore[arg-type]
        about = manifest.Manifest(collected_at=NOW, sections=[section], clusters=clusters)
        analysis = analysed(of_files(tmp_path / f"{state}.tar.zst", files, about=about))
        assert {work.id for work in analysis.works} == expected
    assert "MW-009" in {work.code for work in analysed(tmp_path / "collected.tar.zst").works}


def test_object_that_the_cluster_did_not_show_is_unknown_and_not_absent(tmp_path: Path) -> None:
    named = {"group": "", "plural": "configmaps", "namespace": "d", "name": "cm-1"}
    denied = {"trace": "denied", **named, "problem": "forbidden"}
    about = manifest.Manifest(collected_at=NOW, clusters=[manifest.Cluster(label="m1", folder="m1", consumer="c1")])
    rows = {"database/rows.jsonl": lines(row(1))}
    without = {**rows, "clusters/m1/objects.jsonl": lines(applied_work(1))}
    hidden = {**rows, "clusters/m1/objects.jsonl": lines(applied_work(1), denied)}
    absent = analysed(of_files(tmp_path / "a.tar.zst", without, about=about))
    forbidden = analysed(of_files(tmp_path / "b.tar.zst", hidden, about=about))
    assert [work.code for work in absent.works] == ["MW-104"]
    assert [work.code for work in forbidden.works] == ["MW-100"]
    assert "forbidden" in report.text(forbidden, most=20)


def test_pause_of_delivery_is_named_for_a_work_that_waits(tmp_path: Path) -> None:
    waiting = {**row(1), "status": None}
    pause = {"trace": "pause", "consumer_name": "c1", "paused_by": "me", "paused_at": NOW, "reason": "upgrade"}
    files = {"database/rows.jsonl": lines(waiting), "database/pauses.jsonl": lines(pause)}
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files))
    assert "MW-123" in [item.code for item in analysis.findings]


def test_diff_names_new_and_gone_findings_and_changed_works(tmp_path: Path) -> None:
    before = analysed(of_files(tmp_path / "a.tar.zst", {"database/rows.jsonl": lines(row(1), row(2, applied="False"))}))
    holds = lines({"trace": "hold", "consumer_name": "c1", "work_count": 2})
    files = {"database/rows.jsonl": lines(row(2), row(3)), "database/holds.jsonl": holds}
    after = analysed(of_files(tmp_path / "b.tar.zst", files))
    difference = diff.compare(before, after)
    assert "MD-501" in {item.code for item in difference.new}
    assert "MW-005" in {item.code for item in difference.gone}
    assert {name: bool(new) for name, _, new in difference.works} == {
        "work-1 of c1": False,
        "work-2 of c1": True,
        "work-3 of c1": True,
    }
    assert difference.exit is Exit.PROBLEM
    assert json.loads(diff.document(difference, form="json"))["exitCode"] == 1
    assert diff.compare(after, after).exit is Exit.HEALTHY
    assert "No difference" in diff.text(diff.compare(after, after))


@pytest.mark.parametrize(
    ("subscription", "is_missing"),
    [
        ({"name": "s/sourceevents-x", "filter": ""}, True),
        ({"name": "s/sourceevents-c1", "filter": ""}, False),
        ({"name": "s/sourceevents-c1", "filter": 'attributes."ce-clustername"="other"'}, True),
        ({"name": "s/any", "filter": 'attributes."ce-clustername"="c1"'}, False),
        ({"name": "s/any", "problem": "denied"}, False),
    ],
    ids=["other-name", "by-name", "other-filter", "by-filter", "unknown"],
)
def test_consumer_without_subscription_of_pubsub(
    tmp_path: Path, subscription: dict[str, str], *, is_missing: bool
) -> None:
    files = {
        "server/broker-state.jsonl": lines({"trace": "subscription", "role": "agent", **subscription}),
        "database/rows.jsonl": lines(row()),
    }
    found = [item.code for item in analysed(of_files(tmp_path / "a.tar.zst", files)).findings]
    assert ("MD-308" in found) is is_missing


def test_works_that_only_a_hold_knows_are_judged_by_it(tmp_path: Path) -> None:
    """The database was replaced: it has none of the works, and the hold says which ones the agent keeps."""
    hold = {"trace": "hold", "consumer_name": "c1", "reason": "OtherDatabase", "work_count": 1, "works": ["id-9"]}
    files = {"database/rows.jsonl": "", "database/holds.jsonl": lines(hold)}
    about = manifest.Manifest(collected_at=NOW, sections=[manifest.Section(name="works", state="collected")])
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files, about=about))
    assert [(work.id, work.code) for work in analysis.works] == [("id-9", "MW-122")]
    assert [found.code for found in analysis.findings][:1] == ["MD-501"]
