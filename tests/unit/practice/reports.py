"""Read the JSON of `maestro diagnose analyze` back into an analysis, as far as the engine asks for it."""

from datetime import datetime
from typing import Any

from maestropy.diagnose.analysis.analyze import Analysis, JudgedRequest, JudgedWork
from maestropy.diagnose.analysis.ranking import Ranked
from maestropy.diagnose.manifest import Manifest
from maestropy.trace.exit_codes import Exit
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Finding
from maestropy.trace.work.judge.findings import bare_finding


def analysis(report: dict[str, Any]) -> Analysis:
    return Analysis(
        archive=report["archive"],
        manifest=Manifest(),
        now=datetime.fromisoformat(report["collectedAt"]),
        findings=tuple(_finding(each) for each in report["findings"]),
        works=tuple(
            JudgedWork(
                id=each["id"],
                name=each["name"],
                consumer=each["consumer"],
                code=each["code"],
                verdict=each["verdict"],
                exit=CODES[each["code"]].exit,
                main=bare_finding(each["code"]),
            )
            for each in report["works"]
        ),
        requests=tuple(
            JudgedRequest(
                resource_id=each["resourceId"],
                work_name=each["workName"],
                consumer=each["consumer"],
                action=each["action"],
                version=each["version"],
                verdict=each["verdict"],
                failed_stage=each["failedStage"],
                code=each["code"],
            )
            for each in report["requests"]
        ),
        exit=Exit(report["exitCode"]),
    )


def _finding(each: dict[str, Any]) -> Ranked:
    found = Finding(code=each["code"], severity=each["severity"], title=each["title"])
    return Ranked.of(found, engine=each["engine"])
