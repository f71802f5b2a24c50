"""What is true of a situation, in the words in which an on-call person would want to hear it."""

import json
from dataclasses import dataclass
from typing import Any

Request = dict[str, Any]

COMPLETE = ("complete",)
STOPPED = ("failed", "incomplete", "pending")
"""The request did not end; whether an error was logged is the only difference between these verdicts."""
FAILED = ("failed",)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is true of one request at the moment at which the logs were collected."""

    work: str
    action: str = "create"
    verdicts: tuple[str, ...] = COMPLETE
    """Any of these; more than one where logs cannot tell them apart."""
    stage: int | None = None
    """Where it stopped; None where it did not, or where the logs cannot show it."""
    codes: tuple[str, ...] = ()
    """One of these is the main finding; empty where the cause is not visible."""
    says: tuple[str, ...] = ()
    """Each of these words is in the findings."""
    never: tuple[str, ...] = ()
    """None of these words or codes is in the findings."""
    version: int | None = None
    nth: int = 0
    """Which of several equal requests, in order of time; counts only requests of the same action and version."""
    absent: bool = False
    """The logs hold no such request, and asking for it says so."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A named situation: how it is made, where its logs are, and what is true of it."""

    name: str
    made: str
    scene: str
    moment: str
    """Names the collected logs."""
    truths: tuple[Truth, ...]
    stacks: tuple[str, ...] = ("go", "python")
    notes: tuple[str, ...] = ()
    """Words that the notes on the logs must contain, such as the name of a server whose log is missing."""
    only_asked: bool = False
    """The tracer lists no request of a work that nobody asked for."""


def differences(truth: Truth, request: Request) -> list[str]:
    wrong = []
    findings = request["findings"]
    if request["verdict"] not in truth.verdicts:
        wrong.append(f"is {' or '.join(truth.verdicts)}")
    if truth.stage is not None and request["failedStage"] != truth.stage:
        wrong.append(f"stopped at stage {truth.stage}")
    if truth.codes and main_code(request) not in truth.codes:
        wrong.append(f"the cause is {' or '.join(truth.codes)}")
    text = json.dumps(findings)
    wrong += [f"must say {word!r}" for word in truth.says if word not in text]
    spoken = {finding["code"] for finding in findings}
    wrong += [f"must not say {word}" for word in truth.never if word in spoken]
    return wrong


def main_code(request: Request) -> str:
    """Return the code that stands in the verdict's line: of the stage where the request stopped, else the first."""
    findings = request["findings"]
    of_stage = [finding for finding in findings if finding["stage"] == request["failedStage"]]
    return str((of_stage or findings)[0]["code"]) if findings else ""
