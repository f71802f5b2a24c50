"""Works in dumps: samples of an HCP fleet, nested works, and both generations of names."""

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
from maestropy.trace.errors import InputUnreadable, NoAccess
from maestropy.trace.output import Exit
from maestropy.trace.work import gather
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.model import Json, Kind
from maestropy.trace.work.query import ManifestQuery, WorkQuery, named_by
from maestropy.trace.work.report import exports, render
from maestropy.trace.work.report import work_report as report
from maestropy.wire.works import resource_id

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


def trace(directory: Path, query: WorkQuery) -> report.WorkReport:
    found = offline.load(directory)
    clusters = [
        offline.OfflineCluster(label=name or "dump", consumer=name, content=content)
        for name, content in found.clusters.items()
    ]
    readers = gather.Readers(database=offline.OfflineDatabase(dump=found, description="dump"), clusters=clusters)
    result = asyncio.run(gather.gather(query, readers, depth=LookupDepth()))
    return report.build(result, now=datetime(2026, 8, 20, 11, tzinfo=UTC), expectations=Expectations())


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(WorkQuery(entry="resource-id", values=(BUNDLE_ID,)), id="id"),
        pytest.param(WorkQuery(entry="label", values=("api.openshift.com/id", CLUSTER_ID)), id="label"),
        pytest.param(
            WorkQuery(
                entry="manifest", manifest=ManifestQuery(kind="hostedcluster", name="f3k9q2", namespace=NAMESPACE)
            ),
            id="from-a-hosted-cluster-two-works-up",
        ),
        pytest.param(WorkQuery(entry="applied-work", values=(f"{'a' * 64}-{CLUSTER_ID}",)), id="from-the-inner-record"),
    ],
)
def test_nested_work_is_found_from_every_identifier(dump: Path, query: WorkQuery) -> None:
    found = trace(dump, query)
    assert [work.verdict.code for work in found.works] == ["MW-001"], render.text(found)
    data = found.works[0].facts.data
    assert data.row is not None
    assert data.row.id == BUNDLE_ID
    inner = data.nested[0]
    assert (inner.namespace, inner.name, len(inner.applied)) == ("local-cluster", CLUSTER_ID, 1)
    assert [str(live.key) for live in inner.live_objects if live.state == "present"] == [
        f"Secret/{NAMESPACE}/f3k9q2-pull",
        f"HostedCluster/{NAMESPACE}/f3k9q2",
    ]
    shown = (
        render.text(found, is_wide=True) + exports.tree(found) + json.dumps(report.model(found)) + exports.html(found)
    )
    assert "dG9wLXNlY3JldA" not in shown
    assert "HostedCluster" in shown


def test_feedback_of_the_nested_work_has_no_secrets(dump: Path) -> None:
    shown = exports.feedback(trace(dump, WorkQuery(entry="resource-id", values=(BUNDLE_ID,))))
    assert f"ManifestWork/local-cluster/{CLUSTER_ID}  status = " in shown
    assert "EtcdWaitingForQuorum" in shown or "Available" in shown


def test_command_reads_a_dump(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_owner_chain_is_reported(dump: Path) -> None:
    query = WorkQuery(entry="manifest", manifest=ManifestQuery(kind="hostedcluster", name="f3k9q2"))
    steps = trace(dump, query).result.steps
    assert [step.split(" is owned by ")[0] for step in steps] == [
        f"HostedCluster/{NAMESPACE}/f3k9q2",
        f"ManifestWork/local-cluster/{CLUSTER_ID}",
    ]


def test_nested_works_are_followed_two_levels(tmp_path: Path) -> None:
    def work(name: str, *manifests: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "local-cluster"}
        spec = {"workload": {"manifests": list(manifests)}}
        return {"apiVersion": WORK_API, "kind": "ManifestWork", "metadata": metadata, "spec": spec}

    leaf: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "leaf", "namespace": "default"},
    }
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
    found = trace(tmp_path, WorkQuery(entry="resource-id", values=("outer",)))
    nested = found.works[0].facts.data.nested[0]
    assert (nested.name, nested.nested[0].name, nested.nested[0].depth) == ("first", "second", 2)
    assert [live.state for live in nested.nested[0].live_objects] == ["present"]


def test_applied_work_with_user_work_name_is_found(tmp_path: Path) -> None:
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cm", "namespace": "default"},
    }
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
    for query in (
        WorkQuery(entry="resource-id", values=("an-id",)),
        WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="cm")),
        WorkQuery(entry="applied-work", values=(old["metadata"]["name"],)),
    ):
        found = trace(tmp_path, query)
        codes = {finding.code for finding in found.works[0].verdict.findings}
        assert {"MW-001", "MW-115"} <= codes, render.text(found)
        assert found.exit == Exit.HEALTHY


def test_undelivered_bundle_is_reported(tmp_path: Path) -> None:
    shutil.copy(DATA / "trace_work_undelivered_bundle.json", tmp_path / "bundle.json")
    found = trace(tmp_path, WorkQuery(entry="name-like", values=("EAAEB02D",)))
    assert [work.verdict.code for work in found.works] == ["MW-003"], render.text(found)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("{", "neither JSON nor YAML", id="broken"),
        pytest.param("[]", "holds no rows", id="empty"),
        pytest.param('{"hello": 1}', "holds no rows", id="something-else"),
    ],
)
def test_invalid_dump_is_rejected(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InputUnreadable, match=complaint):
        offline.load(tmp_path)
    with pytest.raises(InputUnreadable, match="not a directory"):
        offline.load(tmp_path / "nowhere")


def test_missing_work_is_searched_by_its_computed_id(tmp_path: Path) -> None:
    computed = resource_id.resource_id("s", namespace="c", name="lost")
    other = {"id": "other", "consumer_name": "c", "version": 1, "manifests": [], "metadata": {"name": "other"}}
    (tmp_path / "all.json").write_text(json.dumps([other, applied(f"{'a' * 64}-{computed}", computed, [])]))
    plain = trace(tmp_path, WorkQuery(entry="work-name", values=("lost",)))
    assert [work.verdict.code for work in plain.works] == ["MW-010"]
    found = trace(tmp_path, WorkQuery(entry="work-name", values=("lost",), source="s", consumer="c"))
    assert [work.verdict.code for work in found.works] == ["MW-009"]


class WithoutRights(offline.OfflineCluster):
    """A cluster that lets nobody see ManifestWorks."""

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        if kind.kind == "ManifestWork":
            raise NoAccess("forbidden")
        return await super().objects(kind, namespace=namespace, name=name)


async def test_forbidden_outer_works_do_not_hide_the_work(tmp_path: Path) -> None:
    record = applied(f"{'a' * 64}-an-id", "an-id", [])
    cm = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "d", "uid": "1"}}
    cm["metadata"] |= {"ownerReferences": owned_by(record["metadata"]["name"], "u")}  # type: ignore[operator]  # a dict
    stranger = {"apiVersion": WORK_API, "kind": "ManifestWork", "metadata": {"name": "x", "namespace": "y"}}
    row = {"id": "an-id", "consumer_name": "", "version": 1, "manifests": [], "metadata": {"name": "w"}}
    (tmp_path / "all.json").write_text(json.dumps([row]))
    sorting = offline.Sorting()
    sorting.add([record, cm, stranger])
    cluster = WithoutRights(label="weak", consumer="", content=sorting.dump().clusters[""])
    database = offline.OfflineDatabase(dump=offline.load(tmp_path), description="dump")
    query = WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="cm"))
    readers = gather.Readers(database=database, clusters=[cluster])
    result = await gather.gather(query, readers, depth=LookupDepth())
    assert [work.row.id for work in result.works if work.row] == ["an-id"]
    assert any("is unknown: forbidden" in step for step in result.steps)


@pytest.mark.parametrize("form", ["json", "yaml", "text"])
@pytest.mark.parametrize("version", [1e300, -(10**30), "9" * 5000, True, [1], {"a": 1}], ids=str)
def test_version_that_is_no_version_breaks_no_output(
    dump: Path, capsys: pytest.CaptureFixture[str], version: object, form: str
) -> None:
    for file in dump.glob("*.json"):
        content = json.loads(file.read_text())
        for item in content if isinstance(content, list) else content.get("items", []):
            item["version"] = version
            if isinstance(item.get("status"), dict):
                item["status"]["resourceversion"] = version
        file.write_text(json.dumps(content))
    code = main.call(["trace", "work", "--resource-id", BUNDLE_ID, "--offline", str(dump), "-o", form])
    printed, trouble = capsys.readouterr()
    assert code in (0, 1, 6), trouble
    assert BUNDLE_ID in printed


@pytest.mark.parametrize(
    ("word", "entry"),
    [
        pytest.param(BUNDLE_ID, "resource_id", id="resource-id"),
        pytest.param(f"{'a' * 64}-{BUNDLE_ID}", "applied_work", id="applied-work"),
        pytest.param("deployment/default/nginx", "manifest", id="manifest"),
        pytest.param("app=nginx", "label", id="label"),
        pytest.param("nginx-work", "work_name", id="work-name"),
    ],
)
def test_word_without_a_flag_is_named_by_its_form(word: str, entry: str) -> None:
    assert named_by(word) == {entry: word}


def test_work_is_traced_by_a_bare_word(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_flag = main.call(["trace", "work", "--resource-id", BUNDLE_ID, "--offline", str(dump)])
    expected = capsys.readouterr().out
    assert main.call(["trace", "work", BUNDLE_ID, "--offline", str(dump)]) == by_flag
    assert capsys.readouterr().out == expected
    assert main.call(["trace", "work", BUNDLE_ID, "--work-name", "x", "--offline", str(dump)]) == 2
    assert "given are --resource-id, --work-name" in capsys.readouterr().err
    assert main.call(["trace", "work", "one", "two", "--offline", str(dump)]) == 2
    assert "name one, or write them to a file" in capsys.readouterr().err


def test_name_of_a_consumer_lists_its_works(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    consumer = offline.load(dump).rows[0].consumer
    assert main.call(["trace", "work", consumer, "--offline", str(dump)]) == 7
    printed = capsys.readouterr().out
    assert f"{consumer} is a consumer, not a work; these are its newest works" in printed
    assert BUNDLE_ID in printed
    assert main.call(["trace", "work", "nobody", "--offline", str(dump)]) == 4
