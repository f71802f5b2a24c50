from pathlib import Path

import orjson
import pytest

from maestropy.diagnose import connections
from maestropy.trace.logs.model import Options


def entry(kind: str, seconds: int, consumer: str = "c1") -> dict[str, object]:
    return {"kind": kind, "consumer_name": consumer, "time": f"1970-01-01T00:01:{seconds:02}+00:00"}


def archive(folder: Path, **files: list[dict[str, object]]) -> Path:
    (folder / "database").mkdir()
    for name, documents in files.items():
        (folder / "database" / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in documents))
    return folder


@pytest.mark.parametrize(("entries", "departures"), [
    ([entry("agent.disconnected", 9), entry("agent.connected", 1)], (("c1", 69.0),)),
    ([entry("agent.connected", 9), entry("agent.disconnected", 1)], ()),
    ([entry("agent.disconnected", 1), entry("agent.connected", 9)], ()),
    ([entry("agent.disconnected", 9), entry("agent.connected", 8), entry("agent.connected", 1)], ()),
    ([entry("agent.connected", 9, "c2"), entry("agent.disconnected", 1), entry("work.created", 8)], (("c1", 61.0),)),
    ([entry("agent.disconnected", 1) | {"time": "soon"}, {"kind": ["agent.disconnected"], "time": None}], ()),
], ids=["left", "back", "oldest-first", "overlap", "others", "damaged"])  # fmt: skip
def test_entries_of_a_consumer_say_whether_its_agent_has_left(
    tmp_path: Path, entries: list[dict[str, object]], departures: tuple[tuple[str, float], ...]
) -> None:
    assert connections.options(archive(tmp_path, history=entries)) == Options(departures=departures)


def test_consumers_of_the_archive_are_known(tmp_path: Path) -> None:
    found = connections.options(archive(tmp_path, consumers=[{"name": "c1"}, {"name": None}]))
    assert found == Options(consumers=frozenset({"c1"}))
    assert connections.options(tmp_path / "nothing") == Options()
