"""Ways in which people collect logs: files left out, exports, prefixes, containers' files, cut ends."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

SERVER_PHRASES = (
    "receive the event from client",
    "Publishing resource",
    "received action STATUSMODIFIED",
    "skipping resource status update",
    "status update event was sent",
    "status delete event was sent",
    "Broadcast the resource status",
    "send the event to status subscribers",
    "io.open-cluster-management.works.v1alpha1.manifestbundles",
    "metadata",
)
"""What the runbook's query selects of the servers' lines."""
AGENT_PHRASES = (
    "Received event",
    "Receive the event",
    "Sending event",
    "io.open-cluster-management.works.v1alpha1.manifestbundles",
    "metadata",
)
AGENT_EVENTS = "Event(v1.ObjectReference"
_HEADER = re.compile(r"[IWEF]\d{4} (\d\d:\d\d:\d\d\.\d{6})")

Change = Callable[[Path, Path], None]


def variant(whole: Path, name: str, change: Change) -> Path:
    """Collect the same logs in another way."""
    folder = whole.with_name(name)
    folder.mkdir()
    change(whole, folder)
    return folder


def without(name: str) -> Change:
    """Leave one file out."""

    def copy(whole: Path, folder: Path) -> None:
        for path in whole.iterdir():
            if path.name != name:
                shutil.copy(path, folder)

    return copy


def kusto(whole: Path, folder: Path) -> None:
    """Export servers and agents as the runbook's queries do: two columns, only the selected lines."""
    for name, is_agent in (("servers.csv", False), ("agents.csv", True)):
        with (folder / name).open("w", newline="") as file:
            rows = csv.writer(file, quoting=csv.QUOTE_ALL)
            rows.writerow(["pod_name", "log"])
            for path in sorted(whole.glob("*.log")):
                if ("agent" in path.name) == is_agent:
                    chosen = filter(agents_row if is_agent else servers_row, lines_of(path))
                    rows.writerows((path.stem, line) for line in chosen)


def servers_row(line: str) -> bool:
    return any(phrase in line for phrase in SERVER_PHRASES)


def agents_row(line: str) -> bool:
    left_out = "Object is patched" in line or "Patching resource" in line
    return AGENT_EVENTS in line or (not left_out and any(phrase in line for phrase in AGENT_PHRASES))


def prefixed(whole: Path, folder: Path) -> None:
    """Write all pods into one file, as `kubectl logs --prefix` with a label does."""
    with (folder / "all.log").open("w") as file:
        for path in sorted(whole.glob("*.log")):
            container = "maestro-agent" if "agent" in path.name else "service"
            file.writelines(f"[pod/{path.stem}/{container}] {line}\n" for line in lines_of(path))


def docker(whole: Path, folder: Path) -> None:
    """Write each line as JSON with its time, as the files of containers have it."""
    for path in whole.glob("*.log"):
        with (folder / f"{path.stem}-json.log").open("w") as file:
            time = "00:00:00.000000"
            for line in lines_of(path):
                header = _HEADER.match(line)
                time = header.group(1) if header else time
                file.write(
                    json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"{day_of(path)}T{time}Z"}) + "\n"
                )


def day_of(path: Path) -> str:
    """Return the day of the first record; klog writes no year, the file's time has it."""
    import datetime as dt

    return dt.datetime.fromtimestamp(path.stat().st_mtime, tz=dt.UTC).date().isoformat()


def utf16(whole: Path, folder: Path) -> None:
    """Write the files as Windows programs do, without a byte order mark."""
    for path in whole.glob("*.log"):
        (folder / path.name).write_bytes("\r\n".join(lines_of(path)).encode("utf-16-le"))


def cut_off(folder: Path) -> None:
    """End each server's log in the middle of its last line."""
    for path in folder.glob("maestro-[0-9].log"):
        text = path.read_bytes().rstrip(b"\n")
        last = text.rfind(b"\n") + 1
        path.write_bytes(text[: last + (len(text) - last) // 2])


def lines_of(path: Path) -> Iterator[str]:
    yield from path.read_text(errors="replace").splitlines()
