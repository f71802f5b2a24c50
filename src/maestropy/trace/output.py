"""What every trace report shares: findings, tables, evidence lines, JSON and YAML text.

Pure: it turns values into text and never prints. What a report says is decided by whoever calls.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from maestropy.trace.exits import Exit as Exit

SCHEMA_VERSION = "1"
"""Of the JSON model; it changes only when a field goes or changes its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observed fact a finding rests on."""

    where: str
    """Which source said so: a table, an object, a file and line."""
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a report has to say, with what it rests on and what to do."""

    code: str
    severity: str
    """`error`, `warn` or `info`."""
    title: str
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    """Commands ready to paste, or sentences where no command helps."""


def envelope(*, version: str, generated_at: str, exit_code: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame that every JSON report has, around `body`."""
    frame = {"schemaVersion": SCHEMA_VERSION, "tool": "maestro trace", "version": version, "generatedAt": generated_at}
    return {**frame, **body, "exitCode": exit_code}


def json_text(value: object) -> str:
    """Write JSON for people and programs alike."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n"


def yaml_text(value: object) -> str:
    """Write the same model as YAML, keys in the model's order."""
    plain = orjson.loads(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS))
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
    return text


def table(rows: Iterable[Sequence[str]], *, head: Sequence[str], indent: str = "  ") -> list[str]:
    """Lay out lines whose columns stand under each other; the last column is not padded."""
    lines = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(width(cell) for cell in column) for column in zip(*lines, strict=True)]
    return [
        (
            indent + "  ".join(cell + " " * (size - width(cell)) for cell, size in zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def finding_lines(finding: Finding, *, indent: str = "  ") -> list[str]:
    """Return a finding as lines: what, why, on what evidence, and what to do."""
    lines = [f"{finding.code} {finding.severity}  {printable(finding.title)}"]
    lines += [f"{indent}why       {printable(each)}" for each in finding.detail.splitlines()]
    lines += [f"{indent}evidence  {printable(each.where)}: {printable(each.says)}" for each in finding.evidence]
    lines += [f"{indent}do        {printable(each)}" for each in finding.advice]
    return lines


def finding_model(finding: Finding) -> dict[str, Any]:
    """Return a finding as the JSON model has it."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "title": finding.title,
        "detail": finding.detail,
        "evidence": [{"where": each.where, "says": each.says} for each in finding.evidence],
        "advice": list(finding.advice),
    }


def printable(text: str) -> str:
    """Return `text` without characters that could move the cursor or forge a line of a report."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def width(text: str) -> int:
    """Return the columns `text` takes on a terminal."""
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)
