"""An index restores exactly what the logs contain, or is not used."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.journal import redact
from maestropy.trace.logs import index, tracer
from maestropy.trace.logs.model import Options, Trace
from maestropy.trace.logs.read import scan
from maestropy.trace.logs.read.inputs import log_inputs
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, klog, write

NOW = BASE + 86400
SECRET = "password=hunter2 is wrong"
STORIES = [
    *(LoggedRequest(work=f"w{number}", at=BASE + number) for number in range(12)),
    *(LoggedRequest(work=f"stopped{last}", at=BASE + 40 + last, until=last) for last in range(1, 9)),
    LoggedRequest(work="w1", action="update", version=2, at=BASE + 300),
    LoggedRequest(work="w1", action="delete", version=2, at=BASE + 400),
]


def logs(folder: Path) -> Path:
    write(folder, STORIES)
    for pod, place, body in (
        (AGENT, "base_controller.go:159", f'"controller failed to sync" err="{SECRET}" key="{STORIES[3].resource}"'),
        (SERVERS[0], "baseclient.go:130", f'"the cloudevents client is disconnected" err="{SECRET}" logger="x"'),
    ):
        log = folder / f"{pod}.log"
        log.write_text(log.read_text() + klog(BASE + 700, place, body, "E") + "\n")
    (folder / "beside").write_bytes(b"\0" * 300)
    return folder


def judged(read: scan.Scan, resources: tracer.ClassifiedResources | None = None) -> list[tuple[Trace, object]]:
    environment = tracer.read_environment(
        read.records, read.writers, options=Options(), are_clocks_known=resources is not None
    )
    found = list(tracer.traces(read.records, environment, options=Options(), resources=resources))
    return sorted(((each, each.stages) for each in found), key=lambda each: (each[0].start, each[0].key.resource))


def keep(folder: Path, path: Path) -> tuple[scan.Scan, list[Path]]:
    files = log_inputs.plain_files([str(folder)])
    read = scan.scan_all([str(folder)], now=NOW)
    tracer.read_environment(read.records, read.writers, options=Options())
    assert index.save(path, read, tracer.classify(read.records, read.writers), files=files)
    return read, files


def test_index_restores_the_records(tmp_path: Path) -> None:
    path = tmp_path / "kept.index"
    read, files = keep(logs(tmp_path / "logs"), path)
    kept = index.load(path, files)
    assert list(kept.scan.records) == list(read.records)
    assert kept.scan.writers == read.writers
    assert kept.scan.unreadable_inputs == read.unreadable_inputs
    assert judged(kept.scan, kept.resources) == judged(read)
    assert any("password=[redacted] is wrong" in record.detail for record in kept.scan.records)


def test_index_stores_no_free_text(tmp_path: Path) -> None:
    path = tmp_path / "kept.index"
    keep(logs(tmp_path / "logs"), path)
    assert STORIES[3].resource.encode() in path.read_bytes()
    assert SECRET.encode() not in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0


def grown(log: Path, _: Path) -> None:
    with log.open("a") as stream:
        stream.write("I0115 09:20:00.000000       1 a.go:1] more\n")


def changed_with_the_same_size_and_time(log: Path, _: Path) -> None:
    before = log.stat()
    log.write_bytes(log.read_bytes()[:-2] + b"!\n")
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))


def touched(log: Path, _: Path) -> None:
    os.utime(log, ns=(1, 1))


def torn(_: Path, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flipped(_: Path, path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def of_another_kind(_: Path, path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" * 40)


@pytest.mark.parametrize(
    "harm", [grown, changed_with_the_same_size_and_time, touched, torn, flipped, of_another_kind],
    ids=lambda each: each.__name__,
)  # fmt: skip
def test_index_of_changed_files_is_not_used(tmp_path: Path, harm: Callable[[Path, Path], None]) -> None:
    folder, path = logs(tmp_path / "logs"), tmp_path / "kept.index"
    _, files = keep(folder, path)
    harm(folder / f"{AGENT}.log", path)
    with pytest.raises(index.UnusableIndex, match=r"damaged|changed"):
        index.load(path, files)


def test_index_of_another_code_version_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.index"
    _, files = keep(logs(tmp_path / "logs"), path)
    monkeypatch.setattr(redact, "__file__", str(tmp_path / "redact.py"))
    with pytest.raises(index.UnusableIndex, match="another version"):
        index.load(path, files)


def test_index_path_depends_on_the_files(tmp_path: Path) -> None:
    path = tmp_path / "kept.index"
    folder = logs(tmp_path / "logs")
    _, files = keep(folder, path)
    with pytest.raises(index.UnusableIndex, match="changed"):
        index.load(path, files[:-1])
    assert index.index_path(files, tmp_path) != index.index_path(files[:-1], tmp_path)


def test_command_reports_index_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = logs(tmp_path / "logs")
    path = folder / "kept.index"  # no log, although it lies among them
    command = ["trace", "requests", str(folder), "--index", str(path), "-v", "-o", "csv"]
    told = []
    for reason in ("no index yet", "not read again", "damaged"):
        if reason == "damaged":
            torn(path, path)
        assert main.call(command) == 1
        out, trouble = capsys.readouterr()
        assert reason in trouble
        told.append(out)
    assert told[0] == told[1] == told[2]
    assert main.call(["trace", "requests", str(folder), "--index", "off", "-v"]) == 1
    assert "Index" not in capsys.readouterr().err


def test_archives_are_not_indexed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import gzip

    folder, path = logs(tmp_path / "logs"), tmp_path / "kept.index"
    for file in list(folder.iterdir()):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    main.call(["trace", "requests", str(folder), "--index", str(path), "-v"])
    assert "not written" in capsys.readouterr().err
    assert not path.exists()
