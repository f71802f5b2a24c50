"""Name what is behind a finding, so that works with different causes are not joined into one entry. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from maestropy.trace.findings import apply_errors
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Evidence, Finding
from maestropy.trace.stages import Stage

OF_MANIFESTS: Final = frozenset({"MW-005", "MW-111", "MW-113"})
"""Findings whose evidence is what the cluster said about objects."""
OF_AGENT: Final = frozenset({"MW-002", "MW-003", "MW-004", "MW-007", "MW-008", "MW-101", "MW-105", "MW-122", "MW-123"})
"""Findings about what one agent has not done, or is kept from."""
_OWN_NAME: Final = re.compile(r"(?<=[a-z] )\\*\"[^\"]+\"(?= is (?:forbidden|invalid)| already exists)")
"""The object that an error of an API server is about."""


def of_work(found: Finding, *, consumer: str) -> str:
    """Return the cause of a finding about a work; empty if its code says all."""
    if found.code in OF_MANIFESTS:
        return " ".join(_reasons(found.evidence))
    return consumer if found.code in OF_AGENT else ""


def of_request(found: Finding, detail: str, *, consumer: str) -> str:
    """Return the cause of a finding about a request: the error of the cluster, or whose agent it waits for."""
    return _reason(detail) if CODES[found.code].stage == Stage.AGENT_HANDLES else consumer


def _reasons(evidence: Iterable[Evidence]) -> list[str]:
    return sorted({_reason(item.says) for item in evidence})


def _reason(message: str) -> str:
    """Return an error with its class, without the name of the object, which differs between works."""
    return f"{apply_errors.code_of_apply_error(message)} {_OWN_NAME.sub('…', message)}"
