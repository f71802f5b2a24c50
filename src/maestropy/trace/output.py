"""Parts that all trace reports share: findings, tables, evidence lines, JSON and YAML text. Pure: never prints."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from maestropy import __version__
from maestropy.trace.exit_codes import Exit as Exit
from maestropy.untrusted.printable import escape, is_safe, json_ascii

printable = escape
"""Removes characters from a text that could move the cursor, forge a line of a report or reorder its text."""
SCHEMA_VERSION = "1"
"""Version of the JSON model; it changes only when a field is removed or changes its meaning."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observed fact a finding rests on."""

    where: str
    """The origin of the fact: a table, an object, or a file and line."""
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of a report, with its evidence and advice."""

    code: str
    severity: str
    """`error`, `warn` or `info`."""
    title: str
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    """Commands ready to paste, or sentences where no command helps."""


def envelope(*, generated_at: str, exit_code: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame that every JSON report has, around `body`."""
    frame = {
        "schemaVersion": SCHEMA_VERSION,
        "tool": "maestro trace",
        "version": __version__,
        "generatedAt": generated_at,
    }
    return {**frame, **body, "exitCode": exit_code}


def document_text(body: Mapping[str, Any], *, form: str, generated_at: str, exit_code: int) -> str:
    """Write a whole report as JSON, or as YAML where `form` says so."""
    whole = envelope(generated_at=generated_at, exit_code=exit_code, body=body)
    return yaml_text(whole) if form == "yaml" else json_text(whole)


def json_text(value: object) -> str:
    """Write JSON for people and programs alike."""
    return json_ascii(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()) + "\n"


def json_line(value: object) -> str:
    """Write JSON on one line."""
    return json_ascii(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode())


def yaml_text(value: object) -> str:
    """Write the same model as YAML, keys in the model's order."""
    plain = orjson.loads(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS))
    text = _yaml(plain, allow_unicode=True)
    # Unprintable characters, such as bidirectional overrides, are escaped with all others beyond ASCII.
    return text if is_safe(text) else _yaml(plain, allow_unicode=False)


def _yaml(plain: object, *, allow_unicode: bool) -> str:
    # The dumper in C takes a third of the time.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=allow_unicode, width=120)
    return text


def table(rows: Iterable[Sequence[str]], *, head: Sequence[str], indent: str = "  ") -> list[str]:
    """Format rows as aligned columns; the last column is not padded."""
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
    lines += [f"{indent}why       {printable(line)}" for line in finding.detail.splitlines()]
    lines += [
        f"{indent}evidence  {printable(evidence_item.where)}: {printable(evidence_item.says)}"
        for evidence_item in finding.evidence
    ]
    lines += [f"{indent}do        {printable(command)}" for command in finding.advice]
    return lines


def evidence_model(evidence: Iterable[Evidence]) -> list[dict[str, str]]:
    """Return evidence as the JSON model has it."""
    return [{"where": evidence_item.where, "says": evidence_item.says} for evidence_item in evidence]


def finding_model(finding: Finding) -> dict[str, Any]:
    """Return a finding as the JSON model has it."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "title": finding.title,
        "detail": finding.detail,
        "evidence": evidence_model(finding.evidence),
        "advice": list(finding.advice),
    }


def width(text: str) -> int:
    """Return the number of terminal columns of `text`."""
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)
