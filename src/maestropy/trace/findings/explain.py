"""Explain the code of any finding, from the one catalogue. Pure: text out.

`maestro trace explain`, runbooks and documents say the same, whichever tracer reported the code.
"""

from maestropy.trace.findings.codes import CODES, PRETTY, SQL, Entry
from maestropy.trace.stages import STAGES


def titles() -> list[tuple[str, str, str]]:
    """Return code, severity and title of every finding."""
    return [(entry.code, entry.severity, entry.title) for entry in CODES.values()]


def explained(code: str) -> str:
    """Return everything that is known about a code; empty for one that does not exist."""
    return _text(CODES[code]) if code in CODES else ""


def of_sentence(sentence: str) -> str:
    """Return what may be behind an error of the older scripts; empty for another sentence."""
    wanted = sentence.upper().removeprefix("ERROR:").strip()
    stage = next((number for number, names in STAGES.items() if names[2].upper() == wanted), 0)
    if not stage:
        return ""
    entries = [entry for entry in CODES.values() if entry.stage == stage and entry.severity != "info"]
    head = f"Stage {stage}, {STAGES[stage][1]}: {STAGES[stage][2]}. It may be one of these.\n\n"
    return head + "\n".join(map(_text, entries))


def _text(entry: Entry) -> str:
    title = f"{entry.name}: {entry.title}" if entry.name else entry.title
    lines = [f"{entry.code}  {entry.severity}  {title}", *_place(entry), f"cause   {entry.cause}"]
    lines += [f"do      {command.replace('{{', '{').replace('}}', '}')}" for command in entry.advice]
    lines += [f"search  {phrase}" for phrase in entry.phrases]
    lines += [f"normal  {line}" for line in entry.normal]
    for name in entry.sql:
        lines += [f"check   {statement[name].replace('$1', _ID)};" for statement in (PRETTY, SQL) if name in statement]
    if not entry.stage:
        lines.append(f"exit    {int(entry.exit)}")
    return "\n".join(lines) + "\n"


_ID = "'<resource_id>'"


def _place(entry: Entry) -> list[str]:
    """Return where on the way of a request or of a hosted cluster it is."""
    if entry.stage:
        return [f"stage   {entry.stage} ({STAGES[entry.stage][1]}), in runbooks: ERROR: {STAGES[entry.stage][2]}"]
    return [f"hop     {entry.hop}"] if entry.hop else []
