"""An incident, and analyses of it, for tests that need no archive."""

from datetime import UTC, datetime
from typing import Any

from maestropy.diagnose.analysis import health
from maestropy.diagnose.analysis.analyze import Analysis, JudgedRequest, JudgedWork
from maestropy.diagnose.analysis.ranking import Ranked
from maestropy.diagnose.manifest import Manifest
from maestropy.practice.model import Answer, Incident, Truth
from maestropy.trace.exit_codes import Exit
from maestropy.trace.output import Evidence
from maestropy.trace.work.judge.findings import bare_finding

TRUTH = Truth(
    work="web",
    resource_id="id-1",
    verdicts=("failed", "incomplete"),
    stage=4,
    codes=("MT-404", "MW-005"),
    hops=("cluster",),
    why="The manifest is invalid.",
)
RIGHT = Answer(incident="01", work="web", verdict="failed", stage=4, code="MT-404", hop="cluster")


def incident(**truth: Any) -> Incident:
    values = {name: getattr(TRUTH, name) for name in TRUTH.__struct_fields__} | truth
    return Incident(
        id="01",
        title="invalid",
        stack="go",
        broker="grpc",
        servers=1,
        verbosity=4,
        collected="logs",
        statement="web does not run.",
        asked="web",
        hints=("one", "two"),
        truth=Truth(**values),
    )


def request(**changes: Any) -> JudgedRequest:
    values: dict[str, Any] = {
        "resource_id": "id-1", "work_name": "web", "consumer": "c1", "action": "create", "version": 1,
        "verdict": "failed", "failed_stage": 4, "code": "MT-404",
    }  # fmt: skip
    return JudgedRequest(**values | changes)


def work(code: str, verdict: str, *, ending: Exit = Exit.PROBLEM, **changes: Any) -> JudgedWork:
    values: dict[str, Any] = {"id": "id-1", "name": "web", "consumer": "c1"}
    return JudgedWork(code=code, verdict=verdict, exit=ending, main=bare_finding(code), **values | changes)


def system(code: str, engine: str) -> Ranked:
    return Ranked.of(health.finding(code, evidence=[Evidence(where="x", says="y")]), engine=engine)


def analysis(
    *requests: JudgedRequest, works: tuple[JudgedWork, ...] = (), findings: tuple[Ranked, ...] = ()
) -> Analysis:
    return Analysis(
        archive="x",
        manifest=Manifest(),
        now=datetime(2026, 11, 18, tzinfo=UTC),
        findings=findings,
        works=works,
        requests=requests,
    )
