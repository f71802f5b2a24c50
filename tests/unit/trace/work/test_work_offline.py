"""Traces from dumped files: the samples of an HCP fleet, works within works, and both generations of names."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from maestropy.cli import main
from maestropy.trace import offline
from maestropy.trace.errors import NoAccess, Unreadable
from maestropy.trace.output import Exit
from maestropy.trace.work import exports, gather, render, report
from maestropy.trace.work.facts import Wish
from maestropy.trace.work.looking import Depth
from maestropy.trace.work.model import Json, Kind
from maestropy.trace.work.question import Manifest, Question
from maestropy.wire import identity

DATA = Path(__file__).parents[3] / "data"
CLUSTER_ID = "2ppsfca8u7368uin9koq9aq1b183mqke"
BUNDLE_ID = "0243d197-f374-5370-b866-6d9272063084"
NAMESPACE = f"ocm-arohcpdev-{CLUSTER_ID}"
WORK_API = "work.open-cluster-management.io/v1"


def owned_by(name: str, uid: str) -> list[dict[str, str]]:
    return [{"apiVersion": WORK_API, "kind": "AppliedManifestWork", "name": name, "uid": uid}]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """What was dumped from one HCP cluster: bundle, works, applied works of both levels, the hosted cluster."""
    for name in ("bundles", "applied_outer"):
        shutil.copy(DATA / f"trace_work_{name}.json", tmp_path / f"{name}.json")
    works = json.loads((DATA / "trace_work_manifestworks.json").read_text())
    outer = json.loads((DATA / "trace_work_applied_outer.json").read_text())["metadata"]["name"]
    works["items"][0]["metadata"] |= {"uid": "0b7c…", "ownerReferences": owned_by(outer, "outer-uid")}
    (tmp_path / "manifestworks.json").write_text(json.dumps(works))
    inner = f"{'a' * 64}-{CLUSTER_ID}"
    hosted = json.loads((DATA / "trace_work_hostedcluster.json").read_text())
    hosted["metadata"] |= {"uid": "hc-uid", "ownerReferences": owned_by(inner, "inner-uid")}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "f3k9q2-pull", "namespace": NAMESPACE, "uid": "s-uid"},
        "data": {".dockerconfigjson": "dG9wLXNlY3JldA=="},
    }
    resources = [
        {
            "group": "",
            "version": "v1",
            "resource": "secrets",
            "namespace": NAMESPACE,
            "name": "f3k9q2-pull",
            "uid": "s-uid",
        },
        {
            "group": "hypershift.openshift.io",
            "version": "v1beta1",
            "resource": "hostedclusters",
            "namespace": NAMESPACE,
            "name": "f3k9q2",
            "uid": "hc-uid",
        },
    ]
    (tmp_path / "objects.json").write_text(
        json.dumps({"kind": "List", "items": [hosted, secret, applied(inner, CLUSTER_ID, resources)]})
    )
    return tmp_path


def applied(name: str, work_name: str, resources: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "apiVersion": WORK_API,
        "kind": "AppliedManifestWork",
        "metadata": {"name": name, "uid": f"uid-of-{name[:8]}"},
        "spec": {"hubHash": name[:64], "agentID": name[:64], "manifestWorkName": work_name},
        "status": {"appliedResources": resources},
    }


def trace(directory: Path, question: Question) -> report.Report:
    found = offline.load(directory)
    clusters = [
        offline.OfflineCluster(label=name or "dump", consumer=name, items=items)
        for name, items in found.clusters.items()
    ]
    sides = gather.Sides(database=offline.OfflineDatabase(dump=found, directory=directory), clusters=clusters)
    answer = asyncio.run(gather.gather(question, sides, depth=Depth()))
    return report.build(answer, now=datetime(2026, 8, 20, 11, tzinfo=UTC), wish=Wish())


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(Question(entry="resource-id", values=(BUNDLE_ID,)), id="id"),
        pytest.param(Question(entry="label", values=("api.openshift.com/id", CLUSTER_ID)), id="label"),
        pytest.param(
            Question(entry="manifest", manifest=Manifest(kind="hostedcluster", name="f3k9q2", namespace=NAMESPACE)),
            id="from-a-hosted-cluster-two-works-up",
        ),
        pytest.param(Question(entry="applied-work", values=(f"{'a' * 64}-{CLUSTER_ID}",)), id="from-the-inner-record"),
    ],
)
def test_a_work_within_a_work_from_every_end(dump: Path, question: Question) -> None:
    found = trace(dump, question)
    assert [each.verdict.code for each in found.works] == ["MW-001"], render.text(found)
    gathered = found.works[0].facts.gathered
    assert gathered.row is not None
    assert gathered.row.id == BUNDLE_ID
    inner = gathered.nested[0]
    assert (inner.namespace, inner.name, len(inner.applied)) == ("local-cluster", CLUSTER_ID, 1)
    assert [str(live.key) for live in inner.lives if live.state == "present"] == [
        f"Secret/{NAMESPACE}/f3k9q2-pull",
        f"HostedCluster/{NAMESPACE}/f3k9q2",
    ]
    shown = (
        render.text(found, is_wide=True) + exports.tree(found) + json.dumps(report.model(found)) + exports.html(found)
    )
    assert "dG9wLXNlY3JldA" not in shown
    assert "HostedCluster" in shown


def test_feedback_of_the_inner_work_is_told_without_secrets(dump: Path) -> None:
    shown = exports.feedback(trace(dump, Question(entry="resource-id", values=(BUNDLE_ID,))))
    assert f"ManifestWork/local-cluster/{CLUSTER_ID}  status = " in shown
    assert "EtcdWaitingForQuorum" in shown or "Available" in shown


def test_the_command_offline(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["trace", "work", "--resource-id", BUNDLE_ID, "--offline", str(dump)]
    assert main.call([*words, "--tree", "--feedback"]) == 0
    shown = capsys.readouterr().out
    assert "work within: local-cluster/" in shown
    assert "Feedback:" in shown
    assert main.call([*words, "--then-request", "/nowhere"]) != 0
    assert main.call(["trace", "work", "--name-like", "889f", "--offline", str(dump), "-o", "yaml"]) == 0
    assert BUNDLE_ID in capsys.readouterr().out
    assert main.call(["trace", "work", "--work-name=x", "--label=a=b", "--offline", str(dump)]) == 2
    assert "given are --work-name, --label" in capsys.readouterr().err
    assert main.call(["trace", "work", "--work-name=x", "--offline", "/nowhere"]) == 3


def test_the_way_up_is_told(dump: Path) -> None:
    question = Question(entry="manifest", manifest=Manifest(kind="hostedcluster", name="f3k9q2"))
    steps = trace(dump, question).answer.steps
    assert [step.split(" is owned by ")[0] for step in steps] == [
        f"HostedCluster/{NAMESPACE}/f3k9q2",
        f"ManifestWork/local-cluster/{CLUSTER_ID}",
    ]


def test_two_levels_down(tmp_path: Path) -> None:
    def work(name: str, *manifests: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "local-cluster"}
        spec = {"workload": {"manifests": list(manifests)}}
        return {"apiVersion": WORK_API, "kind": "ManifestWork", "metadata": metadata, "spec": spec}

    leaf = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leaf", "namespace": "default"}}
    second = work("second", leaf)
    first = work("first", second)
    line = {"group": "work.open-cluster-management.io", "version": "v1", "resource": "manifestworks", "uid": ""}
    objects = [
        {**first, "metadata": {**first["metadata"], "uid": "1"}},
        {**second, "metadata": {**second["metadata"], "uid": "2"}},
        {**leaf, "metadata": {**leaf["metadata"], "uid": "3"}},
        applied(f"{'a' * 64}-outer", "outer", [{**line, "namespace": "local-cluster", "name": "first"}]),
        applied(f"{'b' * 64}-first", "first", [{**line, "namespace": "local-cluster", "name": "second"}]),
        applied(
            f"{'b' * 64}-second",
            "second",
            [
                {
                    "group": "",
                    "version": "v1",
                    "resource": "configmaps",
                    "namespace": "default",
                    "name": "leaf",
                    "uid": "3",
                }
            ],
        ),
    ]
    bundle = {"id": "outer", "consumer_name": "c", "version": 1, "manifests": [first], "metadata": {"name": "w"}}
    (tmp_path / "all.json").write_text(json.dumps([bundle, *objects]))
    found = trace(tmp_path, Question(entry="resource-id", values=("outer",)))
    nested = found.works[0].facts.gathered.nested[0]
    assert (nested.name, nested.nested[0].name, nested.nested[0].depth) == ("first", "second", 2)
    assert [live.state for live in nested.nested[0].lives] == ["present"]


def test_the_older_generation_of_names(tmp_path: Path) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "default"}}
    line = {"group": "", "version": "v1", "resource": "configmaps", "namespace": "default", "name": "cm", "uid": "1"}
    row = {
        "id": "an-id",
        "source": "s",
        "consumer_name": "c",
        "version": 1,
        "created_at": "2025-12-01T00:00:00Z",
        "payload": {"metadata": {"name": "my-work"}, "data": {"manifests": [manifest]}},
        "status": {
            "resourceversion": 1,
            "sequenceid": "1999832099518943232",
            "data": {"conditions": [{"type": "Applied", "status": "True"}]},
        },
    }
    old = applied(f"{'a' * 64}-my-work", "my-work", [line])
    live = {
        **manifest,
        "metadata": {**manifest["metadata"], "uid": "1", "ownerReferences": owned_by(old["metadata"]["name"], "u")},
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "objects.json").write_text(json.dumps([old, live]))
    for question in (
        Question(entry="resource-id", values=("an-id",)),
        Question(entry="manifest", manifest=Manifest(kind="cm", name="cm")),
        Question(entry="applied-work", values=(old["metadata"]["name"],)),
    ):
        found = trace(tmp_path, question)
        codes = {each.code for each in found.works[0].verdict.findings}
        assert {"MW-001", "MW-115"} <= codes, render.text(found)
        assert found.exit == Exit.HEALTHY


def test_an_undelivered_bundle_of_a_fleet(tmp_path: Path) -> None:
    shutil.copy(DATA / "trace_work_undelivered_bundle.json", tmp_path / "bundle.json")
    found = trace(tmp_path, Question(entry="name-like", values=("EAAEB02D",)))
    assert [each.verdict.code for each in found.works] == ["MW-003"], render.text(found)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("{", "neither JSON nor YAML", id="broken"),
        pytest.param("[]", "holds no rows", id="empty"),
        pytest.param('{"hello": 1}', "holds no rows", id="something-else"),
    ],
)
def test_a_dump_that_is_none(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(Unreadable, match=complaint):
        offline.load(tmp_path)
    with pytest.raises(Unreadable, match="no directory"):
        offline.load(tmp_path / "nowhere")


def test_a_lost_work_is_looked_for_under_the_id_its_parts_make(tmp_path: Path) -> None:
    computed = identity.resource_id("s", namespace="c", name="lost")
    other = {"id": "other", "consumer_name": "c", "version": 1, "manifests": [], "metadata": {"name": "other"}}
    (tmp_path / "all.json").write_text(json.dumps([other, applied(f"{'a' * 64}-{computed}", computed, [])]))
    plain = trace(tmp_path, Question(entry="work-name", values=("lost",)))
    assert [each.verdict.code for each in plain.works] == ["MW-010"]
    found = trace(tmp_path, Question(entry="work-name", values=("lost",), source="s", consumer="c"))
    assert [each.verdict.code for each in found.works] == ["MW-009"]


class WithoutRights(offline.OfflineCluster):
    """A cluster that lets nobody see ManifestWorks."""

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        if kind.kind == "ManifestWork":
            raise NoAccess("forbidden")
        return await super().objects(kind, namespace=namespace, name=name)


def test_not_being_allowed_to_see_outer_works_does_not_hide_the_work_itself(tmp_path: Path) -> None:
    record = applied(f"{'a' * 64}-an-id", "an-id", [])
    cm = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "d", "uid": "1"}}
    cm["metadata"] |= {"ownerReferences": owned_by(record["metadata"]["name"], "u")}  # type: ignore[operator]  # a dict
    stranger = {"apiVersion": WORK_API, "kind": "ManifestWork", "metadata": {"name": "x", "namespace": "y"}}
    row = {"id": "an-id", "consumer_name": "", "version": 1, "manifests": [], "metadata": {"name": "w"}}
    (tmp_path / "all.json").write_text(json.dumps([row]))
    cluster = WithoutRights(label="weak", consumer="", items=(record, cm, stranger))
    database = offline.OfflineDatabase(dump=offline.load(tmp_path), directory=tmp_path)
    question = Question(entry="manifest", manifest=Manifest(kind="cm", name="cm"))
    sides = gather.Sides(database=database, clusters=[cluster])
    answer = asyncio.run(gather.gather(question, sides, depth=Depth()))
    assert [each.row.id for each in answer.works if each.row] == ["an-id"]
    assert any("is unknown: forbidden" in step for step in answer.steps)
