"""Name the page that shows the works of a problem or of a group. Pure; a filter in a link is one of `filters`."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from maestropy.console.rows import WorkRow

STUCK: Final = "#/stuck"
_PLAIN: Final = re.compile(r"[^\s\"'\\\\]+")


def work(work_id: str) -> str:
    """Return the page of one work."""
    return f"#/work/{quote(work_id, safe='')}"


def works(*terms: str) -> str:
    """Return the list of works that match a filter."""
    return f"#/works?q={quote(' '.join(terms), safe='')}"


def works_of_group(rows: Sequence[WorkRow], *, code: str) -> str:
    """Return the page of the only work of a group, or the list of its works: those with its cause or its consumer."""
    if len(rows) == 1:
        return work(rows[0].id)
    terms = [f"code:{code}"]
    consumers = {row.consumer for row in rows}
    if rows[0].cause and all(row.cause == rows[0].cause for row in rows):
        terms.append(f"cause:{rows[0].cause}")
    if len(consumers) == 1:
        terms.append(consumer(rows[0].consumer))
    return works(*terms)


def consumer(name: str) -> str:
    """Return the term of a filter for the works of a consumer."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f"consumer:{name}" if _PLAIN.fullmatch(name) else f'consumer:"{escaped}"'


def agents_away(consumers: Sequence[str], *, have_works: bool) -> str:
    """Return the works of consumers whose agents are not connected; without works, the clusters themselves."""
    if len(consumers) == 1:
        return works(consumer(consumers[0])) if have_works else f"#/fleet?q={quote(consumers[0], safe='')}"
    return works("is:away") if have_works else "#/fleet"
