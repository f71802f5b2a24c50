"""Whatever shows an archive says the same of a work and of a request: report, lists, pages and tools."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from maestropy.console.archived import archived
from maestropy.diagnose import archive, manifest
from maestropy.diagnose.analysis import analyze
from maestropy.mcp import tools
from tests.unit.diagnose import archives, test_requests

CLUSTER = manifest.Cluster(label="one", folder="c1", consumer="c1")
APPLIED = {
    "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
    "metadata": {"name": "h-id-1"},
    "spec": {"hubHash": "h", "manifestWorkName": "id-1"},
    "status": {"appliedResources": [{"group": "", "version": "v1", "resource": "configmaps", "name": "cm-1",
                                     "namespace": "d", "uid": "u"}]},
}  # fmt: skip


async def verdicts(path: Path, *, request: str = "") -> dict[str, dict[str, str]]:
    """Return the codes by work, or by request, of everything that shows them."""
    with tempfile.TemporaryDirectory() as folder, archive.opened(path, folder=Path(folder)) as opened:
        async with archived(opened) as console:
            listed = {row.id: row.code for row in console.picture.works.values()}
            pages = {key: str((await console.pages.page(key))["work"]["code"]) for key in listed}
            feed = {item["resourceId"]: item["code"] for item in console.requests.listed()}
    analysis = await asyncio.to_thread(archives.analysed, path)
    if request:
        async with tools.opened(tools.Options(archives=(path,))) as box:
            traced = dict((await box.call("trace_request", {"identifier": request})).model)
        return {"report": _codes(analysis, request), "console": {request: feed[request]}, "tool": _of(traced, request)}
    async with tools.opened(tools.Options(archives=(path,))) as box:
        found = dict((await box.call("find", {})).model)
        told = {key: str((await box.call("trace_work", {"work": key})).model["code"]) for key in listed}
    return {
        "report": {work.id: work.code for work in analysis.works},
        "list": listed,
        "page": pages,
        "find": {item["id"]: item["code"] for item in found["items"]},
        "trace_work": told,
    }


def _codes(analysis: analyze.Analysis, request: str) -> dict[str, str]:
    return {item.resource_id: item.code for item in analysis.requests if item.resource_id == request}


def _of(traced: dict[str, Any], request: str) -> dict[str, str]:
    codes = [item["finding"] for item in traced["items"] if "finding" in item]
    return {request: codes[0]}


async def test_work_has_one_verdict_wherever_it_is_shown(tmp_path: Path) -> None:
    files = {
        "database/rows.jsonl": archives.lines(archives.row(1), archives.row(2, applied="False", message="denied")),
        "clusters/c1/appliedmanifestworks.jsonl": archives.lines(APPLIED),
    }
    about = manifest.Manifest(
        collected_at=archives.NOW, clusters=[CLUSTER], sections=[manifest.Section(name="works", state="collected")]
    )
    shown = await verdicts(archives.of_files(tmp_path / "a.tar.zst", files, about=about))
    # The row alone says that all is well; the cluster does not have the object.
    assert shown["report"]["id-1"] == "MW-104"
    assert shown == dict.fromkeys(shown, shown["report"])


@pytest.mark.parametrize("is_paused", [True, False], ids=["paused", "not-paused"])
async def test_request_has_one_verdict_wherever_it_is_shown(tmp_path: Path, is_paused: bool) -> None:
    files = {**test_requests.logs(), "database/rows.jsonl": archives.lines(test_requests.stored())}
    files |= {"database/pauses.jsonl": archives.lines(test_requests.PAUSE)} if is_paused else {}
    path = archives.of_files(tmp_path / "a.tar.zst", files)
    resource_id = test_requests.UNPUBLISHED.resource
    shown = await verdicts(path, request=resource_id)
    assert shown["report"] == {resource_id: "MT-213" if is_paused else "MT-209"}
    assert shown == dict.fromkeys(shown, shown["report"])
