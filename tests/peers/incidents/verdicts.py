"""Asks the tracer about collected logs, as a user does, and compares its answers with the truth."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.incidents.lab import ASKED, STAGE_SECONDS
from tests.peers.incidents.truth import Request, Situation, Truth, differences
from tests.peers.peer_servers import PYTHON_CLI

NOT_FOUND = 4
TIMED_OUT = -1


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """How one situation went: what was wrong, each with what the tracer said."""

    situation: Situation
    wrong: tuple[str, ...] = ()
    not_made: str = ""

    @property
    def is_right(self) -> bool:
        return not self.wrong and not self.not_made


def run(*words: str) -> tuple[int, str]:
    command = [*PYTHON_CLI, "trace", *words, f"--stage-timeout={STAGE_SECONDS}"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        return TIMED_OUT, ""
    return done.returncode, done.stdout.decode()


class Answers:
    """What the tracer says about one folder of logs."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        _, text = run("requests", str(logs), "-o", "json", "--top=0", "--index=off")
        self.whole: dict[str, Any] = json.loads(text) if text else {"requests": []}
        self.asked: dict[str, str] = json.loads((logs.parent / ASKED).read_text())
        self._single: dict[str, tuple[int, list[Request]]] = {}

    @property
    def requests(self) -> list[Request]:
        return list(self.whole["requests"])

    def invented(self) -> list[str]:
        """Return the requests of works that nobody asked for."""
        asked = set(json.loads((self._logs.parent / ASKED).read_text()))
        names = [(request["key"]["workName"] or request["key"]["resourceId"], request) for request in self.requests]
        return [
            f"{name}: nobody asked for it; said {describe(request)}" for name, request in names if name not in asked
        ]

    def alone(self, identifier: str) -> tuple[int, list[Request]]:
        """Return the exit code and the requests of one resource, asked for alone."""
        if identifier not in self._single:
            code, text = run("request", identifier, str(self._logs), "-o", "json")
            self._single[identifier] = code, list(json.loads(text)["requests"]) if text.strip() else []
        return self._single[identifier]


def judge(situation: Situation, answers: Answers) -> Judgement:
    """Compare one situation with the answers."""
    wrong = [reason for truth in situation.truths for reason in compare(truth, answers)]
    notes = json.dumps(answers.whole.get("notes", ""))
    wrong += [f"the notes do not say {word!r}" for word in situation.notes if word not in notes]
    if situation.only_asked:
        wrong += answers.invented()
    return Judgement(situation=situation, wrong=tuple(wrong))


def compare(truth: Truth, answers: Answers) -> list[str]:
    """Return what is wrong with the answers about one request."""
    resource_id = answers.asked.get(truth.work, "")
    same_work = [request for request in answers.requests if request["key"]["resourceId"] == resource_id]
    label = f"{truth.work} {truth.action}"
    if truth.absent:
        code, _ = answers.alone(truth.work)
        wrong = [f"{label}: said to be {describe(request)}" for request in same_work]
        return wrong + ([] if code == NOT_FOUND else [f"{label}: asked alone, exit code {code} instead of {NOT_FOUND}"])
    candidates = [request for request in same_work if is_of(truth, request)]
    if len(candidates) <= truth.nth:
        others = "; ".join(describe(request) for request in same_work) or "no request of the work"
        return [f"{label}: not among the requests ({others})"]
    request = candidates[truth.nth]
    wrong = differences(truth, request)
    found = [f"{label}: {', '.join(wrong)}; said {describe(request)}"] if wrong else []
    return found + disagreements(label, request, answers)


def is_of(truth: Truth, request: Request) -> bool:
    key = request["key"]
    return key["action"] == truth.action and truth.version in (None, key["version"])


def disagreements(label: str, request: Request, answers: Answers) -> list[str]:
    """Return where the request, asked for alone, is judged otherwise."""
    _, alone = answers.alone(request["key"]["resourceId"])
    same = [other for other in alone if identity(other) == identity(request)]
    if not same:
        return [f"{label}: missing when asked for alone"]
    said, said_alone = describe(request), describe(same[0])
    return [] if said == said_alone else [f"{label}: {said} among all, {said_alone} alone"]


def identity(request: Request) -> tuple[Any, ...]:
    key = request["key"]
    return key["action"], key["version"], key["ceId"], key["dbEventId"], request["start"]


def describe(request: Request) -> str:
    """Return verdict, stage and findings in a few words."""
    stage = f" at {request['failedStage']}" if request["failedStage"] else ""
    codes = " ".join(finding["code"] for finding in request["findings"])
    return f"{request['verdict']}{stage} {codes}".strip()
