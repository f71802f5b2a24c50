"""Directories of documents are read; a walk is saved and reported."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from maestropy.cli.main import call
from maestropy.trace.errors import InputUnreadable
from maestropy.trace.hcp.documents import offline, saved_documents
from maestropy.trace.hcp.report import diagram, render
from maestropy.trace.output import Exit
from tests.unit.trace.hcp.hcp_documents import ARM, CID, DATA, MAIN_BUNDLE, NOW, healthy, stuck, walked, write

AT = "--at=2026-08-20T10:40:00Z"


def test_yaml_json_lines_and_folders(tmp_path: Path) -> None:
    told = stuck()
    (tmp_path / "crs" / "ns").mkdir(parents=True)
    items = [told.pop(key) for key in ("hosted", "nodepool", "managed")]
    (tmp_path / "crs" / "ns" / "all.yaml").write_text(
        yaml.safe_dump_all([{"kind": "List", "items": items[:1]}, *items[1:]])
    )
    lines = [told.pop("cosmos"), told.pop("placement")]
    (tmp_path / "cosmos.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = walked(write(tmp_path, told))
    assert (found.verdict.hop, found.verdict.code) == ("hosted-cluster", "HCP-701")
    assert found.hop("backend").facts


def test_truncated_file_is_reported_and_left_out(tmp_path: Path) -> None:
    write(tmp_path, stuck())
    whole = (DATA / "21-mc-pods.json").read_text()
    (tmp_path / "14.txt").write_text(whole[: len(whole) // 2])
    directory = offline.read(tmp_path)
    assert [each.partition(":")[0] for each in directory.unreadable] == ["14.txt"]
    assert walked(tmp_path).verdict.code == "HCP-701"


@pytest.mark.parametrize("content", [None, "", "hello", "[]", '{"kind": "Secret"}', "{", "\x00\x01"], ids=repr)
def test_directory_without_documents_is_rejected(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "file.json").write_text(content)
    with pytest.raises(InputUnreadable, match="holds no document"):
        offline.read(tmp_path)


def test_unused_documents_are_reported() -> None:
    assert "30-hyperfleet-event.json" in offline.read(DATA).unused


def test_bundles_of_other_clusters_are_ignored(tmp_path: Path) -> None:
    told = stuck()
    other = json.dumps(told["bundles"]["items"][0]).replace(CID, "0" * 32)
    told["bundles"]["items"] += [json.loads(other) | {"id": f"other-{number}"} for number in range(1000)]
    assert len(walked(write(tmp_path, told)).context.known.bundle_ids) == 3


def test_saved_walk_gives_the_same_verdict(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    told = stuck()
    told["works"] = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWorkList", "items": []}
    before = walked(write(tmp_path / "before", told))
    saved_documents.write(before, tmp_path / "after")
    directory = offline.read(tmp_path / "after")
    after = walked(tmp_path / "after")
    assert directory.taken_at == NOW
    assert [(hop.name, hop.state, hop.code, hop.reason) for hop in after.hops if hop.name != "works"] == [
        (hop.name, hop.state, hop.code, hop.reason) for hop in before.hops if hop.name != "works"
    ]
    assert after.hop("works").code == before.hop("works").code == "HCP-601"


def test_saved_documents_have_no_secrets(tmp_path: Path) -> None:
    saved_documents.write(walked(DATA), tmp_path)
    kept = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "cmVkYWN0ZWQ" in (DATA / "11-maestro-bundles.json").read_text()
    assert "cmVkYWN0ZWQ" not in kept
    assert "[redacted]" in kept
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


def test_json_has_what_scripts_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["trace", "hcp", ARM, "--offline", str(DATA), AT, "-o", "json"]) == Exit.PROBLEM
    told = json.loads(capsys.readouterr().out)
    verdict = told["verdict"]
    assert (verdict["hop"], verdict["state"], verdict["code"]) == ("hosted-cluster", "bad", "HCP-701")
    assert "EtcdWaitingForQuorum" in verdict["reason"]
    assert {"name", "state", "facts"} <= told["hops"][0].keys()
    assert told["identity"]["clusterServiceId"] == CID
    assert told["exitCode"] == 1
    fact = next(each for hop in told["hops"] for each in hop["facts"] if each["name"] == "EtcdAvailable")
    assert (fact["ageSeconds"], fact["where"]) == (2088, "19-mc-hostedcluster.json")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param([ARM, "--offline", str(DATA)], Exit.PROBLEM, id="problem"),
        pytest.param([ARM, "--offline", str(DATA), "--exit-zero"], 0, id="problem-for-reporting"),
        pytest.param(["nonsense", "--offline", str(DATA)], Exit.USAGE, id="not-an-identifier"),
        pytest.param(["--offline", str(DATA)], Exit.USAGE, id="no-identifier"),
        pytest.param([ARM, "--name", "x", "--offline", str(DATA)], Exit.USAGE, id="two-identifiers"),
        pytest.param(["--name", "x", "--offline", str(DATA)], Exit.USAGE, id="half-an-identifier"),
        pytest.param([ARM, "--offline", str(DATA), "--details", "nowhere"], Exit.USAGE, id="no-such-hop"),
        pytest.param([ARM, "--offline", str(DATA), "--watch"], Exit.USAGE, id="watching-documents"),
        pytest.param([ARM, "--offline", str(DATA), "--at", "noon"], Exit.USAGE, id="not-a-time"),
        pytest.param([ARM, "--cs-url", "localhost:8001"], Exit.USAGE, id="not-an-address"),
        pytest.param([ARM, "--offline", "/nowhere"], Exit.UNREADABLE, id="no-directory"),
        pytest.param(["0" * 32, "--offline", str(DATA)], Exit.NOT_FOUND, id="not-found"),
        pytest.param([CID], Exit.NO_ACCESS, id="nobody-to-ask"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["trace", "hcp", *arguments]) == code
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert bool(told.err) == (code in {Exit.USAGE, Exit.UNREADABLE})


def test_parts_of_the_resource_id(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [
        "--subscription",
        "3F6C1D52-7a0b-4d7e-9c55-0a1be1a2c3d4",
        "--group",
        "RG-CUSTOMER-A",
        "--name",
        "Orders-Prod",
    ]
    assert call(["trace", "hcp", *parts, "--offline", str(DATA)]) == Exit.PROBLEM
    assert "EtcdWaitingForQuorum" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("frontend", 1, ["provisioningState", "Provisioning", "h1x7.westus3.hcp.osadev.cloud"]),
        ("cs", 1, [f"/api/aro_hcp/v1alpha1/clusters/{CID}", "installing"]),
        ("shard", 0, ["dev-westus3-mgmt-1", "hcp-underlay-usw3-mgmt-1"]),
        ("bundles", 0, [MAIN_BUNDLE, "EtcdAvailable=False (EtcdWaitingForQuorum)", "progress=Partial"]),
        ("works", 0, [f"{CID}-00-namespaces", "Applied=True"]),
        ("hostedcluster", 1, ["etcd-2", "f3k9q2-workers", "EtcdWaitingForQuorum"]),
    ],
)
@pytest.mark.parametrize("entry", [ARM, CID], ids=["resource-id", "clusters-service-id"])
def test_single_queries(
    query: str, code: int, words: list[str], entry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["trace", "hcp", query, entry, "--offline", str(DATA), AT]) == code
    told = capsys.readouterr().out
    assert [word for word in words if word not in told] == []


def test_text_shows_strip_verdict_and_details(capsys: pytest.CaptureFixture[str]) -> None:
    call(["trace", "hcp", ARM, "--offline", str(DATA), AT, "-d", "control-plane"])
    told = capsys.readouterr().out
    assert "[works ok] > [hosted-cluster BAD]" in told
    assert "VERDICT  BAD at hosted-cluster (HCP-701)" in told
    assert "pod etcd-2" in told
    assert "pod etcd-0" in told


def test_diagrams() -> None:
    found = walked(DATA)
    chart = diagram.mermaid(found)
    assert 'hosted_cluster["hosted-cluster<br/>bad"]:::bad' in chart
    assert "works --> hosted_cluster" in chart
    assert "```mermaid" in render.markdown(found)
    root = ET.fromstring(diagram.svg(found))
    assert len(root.findall("g")) == 11


def test_page_escapes_document_text(tmp_path: Path) -> None:
    told = stuck()
    told["hosted"]["status"]["conditions"][0]["message"] = "<script>alert(1)</script>\x1b[2J"
    found = walked(write(tmp_path, told))
    assert "<script>" not in diagram.page(found)
    assert "\x1b" not in render.text(found, details=["hosted-cluster"]) + render.markdown(found)


def test_reports_have_no_secrets(tmp_path: Path) -> None:
    told = stuck()
    told["hosted"]["status"]["conditions"][0]["message"] = "login failed: password=hunter2 rejected"
    found = walked(write(tmp_path, told))
    shown = [diagram.page(found), render.text(found, details=["hosted-cluster"]), render.markdown(found)]
    shown += [str(render.model(found)), render.single(found, ["hosted-cluster"])]
    assert all("login failed" in each for each in shown)
    assert not any("hunter2" in each for each in shown)


def test_report_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    arguments = [
        "trace",
        "hcp",
        ARM,
        "--offline",
        str(DATA),
        "-o",
        "html",
        "--out",
        str(page),
        "--save",
        str(tmp_path / "s"),
    ]
    assert call(arguments) == 1
    assert page.read_text().startswith("<!doctype html>")
    assert capsys.readouterr().out == ""
    assert call(["trace", "hcp", ARM, "--offline", str(tmp_path / "s")]) == 1


def test_healthy_ends_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["trace", "hcp", ARM, "--offline", str(write(tmp_path, healthy()))]) == 0
    assert "every hop is where it should be" in capsys.readouterr().out
