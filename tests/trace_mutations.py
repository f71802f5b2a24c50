# ruff: noqa: E501 - log lines are as long as they are
"""Change recorded logs of a Go Maestro: other clocks, lost files, redelivered messages, other verbosities, exports.

The lines stay as a Go server and agent wrote them; a mutation removes, repeats, moves or renames whole records, or writes
one that Go writes in that situation. `Logs` maps a file name to its lines.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

Logs = dict[str, list[str]]
SERVER, AGENT = "maestro-0.log", "maestro-agent-0.log"
_KLOG = re.compile(r"^([IWEF])(\d{4} \d\d:\d\d:\d\d\.\d{6})")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_WHOLE = re.compile(r' event="(\{(?:[^"\\]|\\.)*\})"')
_ATTRIBUTES = ("specversion", "id", "source", "type", "datacontenttype", "time", "data", "subject", "dataschema")
_AT_4 = ("Reconciling ManifestWork", "patching manifestwork", "Receive the event ", "Received event from channel",
         "resources pending deletions", "logger.go:", "writer.go:", "reflector.go:", "hash_dispatcher.go:")  # fmt: skip


def read(folder: Path) -> Logs:
    return {path.name: path.read_text().splitlines() for path in sorted(folder.glob("*.log"))}


def write(logs: Mapping[str, Iterable[str]], folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, lines in logs.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


def moment(line: str) -> datetime | None:
    match = _KLOG.match(line)
    return datetime.strptime(f"2026{match.group(2)}", "%Y%m%d %H:%M:%S.%f") if match else None


def stamped(line: str, at: datetime) -> str:
    return f"{line[0]}{at:%m%d %H:%M:%S.%f}{line[21:]}"


def shifted(lines: Iterable[str], seconds: float) -> list[str]:
    """Return the lines by a clock, or in a time zone, that is ahead."""
    pairs = ((line, moment(line)) for line in lines)
    return [stamped(line, at + timedelta(seconds=seconds)) if at else line for line, at in pairs]


def between(lines: Sequence[str], since: str = "", until: str = "9") -> list[str]:
    """Return the lines from one time of day to another; lines without a time belong to the line before."""
    kept, is_in = [], not since
    for line in lines:
        match = _KLOG.match(line)
        if match:
            is_in = since <= match.group(2)[5:] < until
        if is_in:
            kept.append(line)
    return kept


def without(lines: Iterable[str], *words: str) -> list[str]:
    """Return the lines that do not have all the words."""
    return [line for line in lines if not all(word in line for word in words)]


def only(lines: Iterable[str], *words: str) -> list[str]:
    """Return the lines that have all the words."""
    return [line for line in lines if all(word in line for word in words)]


def merged(*parts: Iterable[str]) -> list[str]:
    """Return lines of several logs in order of time."""
    stamps, number = [], 0
    for part in parts:
        last = ""
        for line in part:
            match = _KLOG.match(line)
            last = match.group(2) if match else last
            number += 1
            stamps.append((last, number, line))
    return [line for _, _, line in sorted(stamps)]


def added(lines: Sequence[str], *more: str) -> list[str]:
    """Return the lines with others at their times."""
    return merged(lines, more)


def klog(at: str, place: str, body: str, level: str = "I") -> str:
    return f"{level}1116 {at}   28959 {place}] {body}"


def time_of(lines: Iterable[str], *words: str, nth: int = 0) -> str:
    """Return the time of day of the n-th line with all the words."""
    match = _KLOG.match(only(lines, *words)[nth])
    assert match
    return match.group(2)[5:]


def later(at: str, seconds: float) -> str:
    return f"{datetime.strptime(at, '%H:%M:%S.%f') + timedelta(seconds=seconds):%H:%M:%S.%f}"


def for_consumer(lines: Iterable[str], consumer: str) -> list[str]:
    """Return the lines of another consumer with works of the same names: other ids, the same objects."""

    def other(match: re.Match[str]) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, match.group() + consumer))

    names = (('"c1"', f'"{consumer}"'), (r"\"c1\"", rf"\"{consumer}\""), ("/c1/", f"/{consumer}/"), ('"c1-', f'"{consumer}-'),
             (r"\"c1-", rf"\"{consumer}-"))  # fmt: skip
    renamed = []
    for line in lines:
        text = _UUID.sub(other, line)
        text = re.sub(r"(?<=\d{2}:\d{2}\.\d{6}) +\d+ ", "   77001 ", text, count=1)
        for old, new in names:
            text = text.replace(old, new)
        # An agent writes these ids at random; two agents have different ones.
        renamed.append(
            re.sub(r'(sequenceid\\*":\\*")(\d+)', lambda match: f"{match.group(1)}{int(match.group(2)) + 7}", text)
        )
    return renamed


def at_verbosity_2(lines: Iterable[str]) -> list[str]:
    """Return what the same components write at -v=2: attributes instead of whole events, no debugging lines."""
    return [_WHOLE.sub(_attributes, line) for line in lines if not any(text in line for text in _AT_4)]


def _attributes(match: re.Match[str]) -> str:
    event = json.loads(json.loads(f'"{match.group(1)}"'))
    extensions = {key: value for key, value in event.items() if key not in _ATTRIBUTES}
    text = json.dumps(extensions, separators=(",", ":"))
    return f' eventID="{event["id"]}" eventType="{event["type"]}" eventSource="{event["source"]}" extensions={text}'


def csv(logs: Logs, *, columns: Sequence[str] = ("TIMESTAMP", "pod_name", "log"), reverse: bool = False,
        keep: Callable[[str], bool] = lambda _: True) -> Logs:  # fmt: skip
    """Return an export with one row per line, as Kusto makes it: in order of time, or backwards."""
    rows: list[tuple[datetime, int, str]] = []
    for name, lines in logs.items():
        last = None
        for line in lines:
            last = moment(line) or last
            if last and keep(line):
                values = {
                    "TIMESTAMP": f"{last:%Y-%m-%dT%H:%M:%S.%f}0Z",
                    "pod_name": name.removesuffix(".log"),
                    "log": line,
                }
                rows.append(
                    (last, len(rows), ",".join('"' + values[column].replace('"', '""') + '"' for column in columns))
                )
    rows.sort(reverse=reverse)
    return {"export.csv": [",".join(f'"{column}"' for column in columns), *(text for _, _, text in rows)]}


def two_servers(lines: Sequence[str]) -> Logs:
    """Return the logs of two servers in broadcast mode: one takes the requests and has the client, the other the statuses."""
    handling = ("handle resource status update", "Updating resource status", "status update event was sent",
                "status delete event was sent", "First status received", "marked as deleting by the agent")  # fmt: skip
    first, second = [], []
    for line in lines:
        of_status = any(text in line for text in handling)
        if "hash ring" in line:
            line = line.replace("Set{maestro-0}", "Set{maestro-0,maestro-1}")
        if "handle resource status update" in line:
            first.append(
                line.replace(
                    "handle resource status update by", "skipping resource status update as it is not owned by"
                ).replace("event_server.go:163", "event_server.go:104")
            )
        if not of_status:
            first.append(line)
        is_shared = of_status or any(
            text in line
            for text in (
                "status.update_request",
                "received status update",
                "Broadcast the resource",
                "hash ring",
                "Starting",
                "Setting up",
                "Git Commit",
            )
        )
        if (
            is_shared
            and "send the event to status subscribers" not in line
            and "receive the event from client" not in line
        ):
            second.append(line.replace('instanceID="maestro-0"', 'instanceID="maestro-1"'))
        if "Broadcast the resource" in line:
            at = _KLOG.match(line)
            assert at
            second.append(
                klog(
                    later(at.group(2)[5:], 0.0001),
                    "event.go:94",
                    '"no clients registered on this instance" logger="maestro-server"',
                )
            )
    return {"maestro-0.log": first, "maestro-1.log": second}
