"""A work that an operator released: one verdict, by whichever identifier it is found."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from maestropy.trace import offline
from maestropy.trace.work import gather, parse
from maestropy.trace.work.judge import deletion
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import WorkQuery
from maestropy.trace.work.report import work_report

ID, HUB = "7c18e417-c007-54c5-9195-f433ca833261", "f" * 64
BY_NAME = WorkQuery(entry="work-name", values=("gonerel-1",))
BY_ID = WorkQuery(entry="resource-id", values=(ID,))
MESSAGE = "consumer gone was retired by ada; the objects stay on its cluster"
CONDITION = {"type": "Deleted", "status": "True", "reason": "Released", "message": MESSAGE}
HOLD = {"trace": "hold", "consumer_name": "gone", "reason": "OtherDatabase", "work_count": 1, "works": [ID]}
APPLIED = {
    "apiVersion": "work.open-cluster-management.io/v1",
    "kind": "AppliedManifestWork",
    "metadata": {"name": f"{HUB}-{ID}", "uid": "u"},
    "spec": {"hubHash": HUB, "manifestWorkName": ID},
}


def tombstone(**fields: Any) -> dict[str, Any]:
    payload = {"metadata": {"name": "gonerel-1", "namespace": "gone"}}
    ended = {"trace": "tombstone", "resource_id": ID, "source": "s", "created_at": "2026-11-18T10:00:00Z"}
    return {**ended, "payload": payload, **fields}


RELEASED = tombstone(released="true", conditions=[CONDITION])


def traced(query: WorkQuery, *documents: dict[str, Any]) -> work_report.Traced:
    sorting = offline.Sorting()
    sorting.add(documents, cluster="mgmt")
    dump = sorting.dump()
    content = dump.clusters.get("mgmt", offline.DumpedCluster())
    clusters = (offline.OfflineCluster(label="mgmt", consumer="gone", content=content),)
    readers = gather.Readers(database=offline.OfflineDatabase(dump=dump, description="dump"), clusters=clusters)
    result = asyncio.run(gather.gather(query, readers, depth=LookupDepth()))
    (work,) = work_report.build(result, now=datetime(2026, 11, 18, 11, tzinfo=UTC), expectations=Expectations()).works
    return work


@pytest.mark.parametrize("query", [BY_NAME, BY_ID], ids=["by-name", "by-id"])
@pytest.mark.parametrize(
    ("documents", "code"),
    [
        pytest.param([RELEASED], "MW-124", id="released"),
        pytest.param([RELEASED, HOLD], "MW-122", id="held"),
        pytest.param([RELEASED, HOLD, APPLIED], "MW-122", id="held-and-on-the-cluster"),
        pytest.param([RELEASED, APPLIED], "MW-124", id="on-the-cluster"),
        pytest.param([tombstone()], "MW-102", id="confirmed"),
        pytest.param([tombstone(), APPLIED], "MW-009", id="confirmed-and-on-the-cluster"),
    ],
)
def test_verdict_does_not_depend_on_the_identifier(
    query: WorkQuery, documents: list[dict[str, Any]], code: str
) -> None:
    work = traced(query, *documents)
    assert work.verdict.code == code
    is_released = RELEASED in documents
    says = [evidence.says for found in work.verdict.findings for evidence in found.evidence]
    assert any(MESSAGE in text for text in says) is is_released
    confirmed = [step.name for step in deletion.steps(work.facts) if step.state == "done"]
    assert ("confirmed" in confirmed) is (code == "MW-102")


def test_last_end_of_a_work_counts() -> None:
    older = {**RELEASED, "created_at": "2026-11-18T09:00:00Z"}
    assert traced(BY_ID, older, tombstone()).verdict.code == "MW-102"


def test_release_is_read_from_a_row_of_status_events() -> None:
    status = {"released": "true", "data": {"conditions": [CONDITION]}}
    assert (
        parse.tombstone({"resource_id": ID, "status_event_type": "StatusDelete", "status": status}).released == MESSAGE
    )
