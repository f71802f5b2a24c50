"""An incident, what is true of it, and an answer to it. Values only."""

from typing import Final

import msgspec

HOPS: Final = ("source", "server", "database", "broker", "agent", "cluster", "status", "subscribers")
"""The way of a work, as the console lays it out: down to the cluster, and back to whoever subscribed."""
NONE: Final = "none"
"""The hop and the code of an answer that says: nothing is broken."""
HEALTHY: Final = frozenset({"complete", "superseded", "no-op"})
"""Verdicts on requests that need no attention."""


class Truth(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What is so. It is written from how the incident was made, never from what a tool says about it."""

    work: str
    """The name of the work."""
    resource_id: str
    action: str = "create"
    version: int | None = None
    verdicts: tuple[str, ...]
    """Any of these is right; more than one where what was collected cannot tell them apart."""
    stage: int | None = None
    """Where the request stopped; None where it did not, or where it cannot be seen."""
    codes: tuple[str, ...] = ()
    """The first is the cause; the others are accepted. Empty where nothing is broken."""
    hops: tuple[str, ...] = ()
    """The first broken hop, then accepted alternatives. Empty where nothing is broken."""
    why: str

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is broken, or is broken any more."""
        return not self.codes and set(self.verdicts) <= HEALTHY


class Incident(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One packaged incident."""

    id: str
    title: str
    stack: str
    """Whose server and agent: `go` or `python`."""
    broker: str
    servers: int
    verbosity: int
    collected: str
    """What the archive holds, in words."""
    statement: str
    """The problem as an on-call person gets it."""
    asked: str = ""
    """What the statement names: a work, its id, or a consumer."""
    hints: tuple[str, ...] = ()
    runbook: int = 0
    """The ERROR section of the runbook `trace_request.md` that it is about, 1 to 9; 0 for none."""
    truth: Truth


class Answer(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What a person or an assistant says about an incident."""

    incident: str
    work: str = ""
    """The name or the id of the work that is affected."""
    verdict: str = ""
    stage: int | None = None
    code: str = ""
    hop: str = ""
    why: str = ""
    """Free text, which is kept and not graded."""


class Catalogue(msgspec.Struct, kw_only=True, frozen=True):
    """All packaged incidents."""

    schema: int = 1
    incidents: tuple[Incident, ...] = ()


class Answers(msgspec.Struct, kw_only=True, frozen=True):
    """The content of an answers file."""

    answers: tuple[Answer, ...]
    by: str = ""
    """Who answered, for the report."""
