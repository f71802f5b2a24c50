"""Write the results of checks as text or JSON, and the flags that these commands share."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from maestropy.aio import checks
from maestropy.cli import screen
from maestropy.cli.errors import FAILED
from maestropy.flags import Flag
from maestropy.flags.declaration import flag, flags_of
from maestropy.flags.overrides import override
from maestropy.untrusted import printable

EXIT_CODES: Final = "Exit codes: 0 nothing failed, 1 a check failed, 2 a mistake in the command line, 130 interrupted."


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSettings:
    """Output"""

    output: Literal["text", "json"] = field(default="text", metadata=flag("-o"))
    """The output format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """The settings of the command itself."""

    output: OutputSettings = field(default_factory=OutputSettings)


OUTPUT_FLAGS: Final = {found.name: found for found in flags_of(CheckSettings)}


def flags_with_output(flags: Mapping[str, Flag]) -> dict[str, Flag]:
    """Return the flags of a process, hidden in the help of this command, and `-o`."""
    return {name: dataclasses.replace(found, hidden=True) for name, found in flags.items()} | OUTPUT_FLAGS


def split(values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the output format, and the values of the other flags."""
    own = {name: value for name, value in values.items() if name in OUTPUT_FLAGS}
    settings = override(CheckSettings(), own, flags=OUTPUT_FLAGS, command="check")
    return settings.output.output, {name: value for name, value in values.items() if name not in OUTPUT_FLAGS}


def write(results: Sequence[checks.Check], *, title: str, output: str) -> int:
    """Print the results, and return the exit code."""
    if output == "json":
        document = {"ok": not checks.has_failed(results), "checks": [as_json(check) for check in results]}
        screen.write(json.dumps(document, indent=2) + "\n")
    else:
        screen.write(text(results, title=title))
    return FAILED if checks.has_failed(results) else 0


def text(results: Sequence[checks.Check], *, title: str) -> str:
    """Return one line for each check, its remedy below it, and the verdict first.

    Details quote servers, certificates and databases: no character of theirs may begin a line or drive a terminal.
    """
    width = max((len(check.name) for check in results), default=0)
    lines = [f"{title}: {_verdict(results)}"]
    for check in results:
        lines.append(f"  {check.outcome.value:<8}  {check.name:<{width}}  {check.detail}".rstrip())
        if check.remedy:
            lines.append(f"{'':<12}fix: {check.remedy}")
    lines = [printable.escape(line) for line in lines]
    return "\n".join([*lines, ""])


def as_json(check: checks.Check) -> dict[str, str]:
    """Return one result for scripts."""
    return {"name": check.name, "outcome": check.outcome.value, "detail": check.detail, "remedy": check.remedy}


def _verdict(results: Iterable[checks.Check]) -> str:
    outcomes = [check.outcome for check in results]
    counts = [(outcome, outcomes.count(outcome)) for outcome in _ORDER]
    return ", ".join(f"{count} {outcome.value}" for outcome, count in counts if count) or "nothing to check"


_ORDER: Final = (checks.Outcome.FAILED, checks.Outcome.WARNING, checks.Outcome.NOT_SEEN, checks.Outcome.OK)
