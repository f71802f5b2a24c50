"""Attacks with files: size, aliases, depth and archives are bounded before they cost memory or time."""

import asyncio
import csv
import gzip
import io
import os
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.flags import document
from maestropy.flags.errors import SettingsError
from maestropy.kube.config import kubeconfig
from maestropy.kube.errors import BadConfig
from maestropy.sdk import targeting
from maestropy.sdk.errors import ConfigError, Invalid
from maestropy.sdk.work import Work
from maestropy.trace.logs.read.inputs import archives
from tests.attacks.processes import MIB, peak_bytes, resident_bytes
from tests.trace_request_logs import LoggedRequest, write

SECONDS = 10.0
"""Generous: a rejected file takes milliseconds; without the limit it takes minutes, or does not end."""
ALIAS_LEVELS = 30


def alias_bomb() -> str:
    """Return half a kilobyte that stands for 2**30 values."""
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata: {name: bomb}", "l0: &l0 [x, x]"]
    return "\n".join([*lines, *(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}]" for n in range(1, ALIAS_LEVELS))])


def merge_bomb() -> str:
    lines = ["kind: ConfigMap", "l0: &l0 {a: 1, b: 2}"]
    return "\n".join([*lines, *(f"l{n}: &l{n} {{<<: [*l{n - 1}, *l{n - 1}]}}" for n in range(1, ALIAS_LEVELS))])


BOMBS = [
    pytest.param(alias_bomb(), "aliases stand for more than 100000 values", id="aliases"),
    pytest.param(merge_bomb(), "aliases stand for more than 100000 values", id="merge-keys"),
    pytest.param(f"a: &a {'x' * MIB}\nb: [{', '.join(['*a'] * 1000)}]", "aliases", id="aliased-string"),
    pytest.param("&a [*a]", "inside of its own anchor", id="cycle"),
    pytest.param("[" * 3000 + "]" * 3000, "100 levels deep", id="depth"),
    pytest.param('{"a":' * 100_000, "100 levels deep", id="deep-json"),
    pytest.param("- 1\n" * 500_000, "more than 250000 values", id="many-values"),
    pytest.param("a: " + "9" * 500_000, "more than 400 digits", id="huge-number"),
]


@contextmanager
def bounded(*, mib: int = 100, seconds: float = SECONDS) -> Iterator[None]:
    """Fail if the block takes much memory or time."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    before, started = resident_bytes(os.getpid()), time.monotonic()
    yield
    assert time.monotonic() - started < seconds
    assert peak_bytes(os.getpid()) - before < mib * MIB


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of 60 MB; sparse, so that the test itself is fast."""
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(60 * MIB)
    return path


def work_from_file(path: Path) -> object:
    return Work("w", consumer="c").add(path)


def config_file(path: Path) -> object:
    return document.read(path, flag="--config", example="url: localhost")


def kubeconfig_file(path: Path) -> object:
    return kubeconfig.read([path])


Reader = Callable[[Path], object]
READERS = [
    pytest.param(work_from_file, Invalid, id="sdk"),
    pytest.param(config_file, SettingsError, id="config"),
    pytest.param(kubeconfig_file, BadConfig, id="kubeconfig"),
]


@pytest.mark.parametrize(("read", "error"), READERS)
def test_large_file(read: Reader, error: type[Exception], large: Path) -> None:
    """A file of 60 MB for the SDK, a flag or a kubeconfig -> rejected by its size, unread, with the limit"""
    with bounded(mib=10, seconds=2), pytest.raises(error, match=r"60\.0 MiB\): the limit is \d MiB"):
        read(large)


@pytest.mark.parametrize(("read", "error"), READERS)
def test_device_without_end(read: Reader, error: type[Exception]) -> None:
    """A device that never ends in the place of a file -> read up to the limit, then rejected"""
    with bounded(mib=30), pytest.raises(error, match=r"the limit is \d MiB"):
        read(Path("/dev/zero"))


@pytest.mark.parametrize(("text", "reason"), BOMBS)
@pytest.mark.parametrize(("read", "error"), READERS)
def test_yaml_bomb(read: Reader, error: type[Exception], text: str, reason: str, tmp_path: Path) -> None:
    """YAML whose few lines stand for billions of values, or nest without end -> rejected at once, with the limit"""
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    with bounded(mib=300), pytest.raises(error) as caught:
        read(path)
    if "digits" not in reason or error is Invalid:
        assert reason in str(caught.value)


@pytest.mark.parametrize(("read", "error"), READERS[1:])
def test_number_of_base_sixty(read: Reader, error: type[Exception], tmp_path: Path) -> None:
    """A number of base 60 with many digits, which takes long to convert -> rejected at once; manifests have none"""
    path = tmp_path / "sixty.yaml"
    path.write_text("a: " + "1:" * 500_000 + "1")
    with bounded(mib=300), pytest.raises(error):
        read(path)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("resourcebundle apply -f {} --consumer c --name n", id="apply"),
        pytest.param("resourcebundle diff -f {} --consumer c --name n", id="diff"),
        pytest.param("adapter lint {}", id="adapter-lint"),
        pytest.param("trace work --offline {} --work-name x", id="trace-offline"),
    ],
)
@pytest.mark.parametrize("kind", ["bomb", "large"])
def test_command(command: str, kind: str, large: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A YAML bomb or 60 MB given to a command -> one sentence with the limit, before any server is called"""
    path = large
    if kind == "bomb":
        path = tmp_path / "bomb.yaml"
        path.write_text(alias_bomb())
        large.unlink()
    argument = str(tmp_path if "--offline" in command else path)
    with bounded():
        code = main.call(command.format(argument).split())
    assert code == 2 if command.startswith("resourcebundle") else code != 0  # as for standard input
    shown = capsys.readouterr()
    assert "limit" in shown.out + shown.err
    assert "unexpected" not in shown.err


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("resourcebundle apply -f {} --consumer c --name n", id="apply"),
        pytest.param("adapter run {adapter} --dry-run --event {}", id="event"),
        pytest.param("adapter run {adapter} --dry-run --event {event} --resource {}", id="resource"),
        pytest.param("consumer list --rest-url https://127.0.0.1:1 --token-file {}", id="token"),
    ],
)
def test_named_pipe(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A named pipe that nobody writes, in the place of a file -> rejected at once, not waited for"""
    adapter, event, pipe = tmp_path / "adapter.py", tmp_path / "event.json", tmp_path / "pipe"
    adapter.write_text("from maestropy.adapter import Adapter\nadapter = Adapter('a')\n")
    event.write_text('{"id": "a", "kind": "Cluster", "generation": 1}')
    os.mkfifo(pipe)
    with bounded():
        assert main.call(command.format(pipe, adapter=adapter, event=event).split()) in (1, 2)
    assert "it is a named pipe, not a regular file" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes without end on standard input -> read up to the limit, then rejected"""
    with Path("/dev/zero").open("rb") as endless, bounded(mib=30):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(endless))
        assert main.call("resourcebundle apply -f - --consumer c --name n".split()) == 2
    assert "standard input is too large: the limit is 8 MiB" in capsys.readouterr().err


def test_advice_fits_the_limit() -> None:
    """A text that is nested too deeply, without any alias -> the advice does not speak of aliases"""
    with pytest.raises(Invalid) as caught:
        Work("w", consumer="c").add("[" * 200)
    assert "nest it less" in str(caught.value)
    assert "alias" not in str(caught.value)


def test_target_file(large: Path) -> None:
    """A mounted ConfigMap of 60 MB as the target of a work -> rejected by its size"""
    with bounded(mib=10, seconds=2), pytest.raises(ConfigError, match="the limit is 2 MiB"):
        asyncio.run(targeting.from_file(large, key="name").consumer())


def test_ordinary_aliases_still_work(tmp_path: Path) -> None:
    """A manifest with a few anchors, aliases and merge keys -> read as before"""
    path = tmp_path / "work.yaml"
    path.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: &l {a: b}}\ndata: {<<: *l, d: 2001-01-01}\n"
    )
    manifest = Work("w", consumer="c").add(path).manifest_work.manifests[0]
    assert manifest["data"] == {"a": "b", "d": "2001-01-01"}


LOG_LINE = 'I0115 09:00:01.123456       1 grpc_server.go:205] "receive the event from client" op-id="a"'
HEADER = "timestamp,pod_name,log\n"
QUOTED_LINE = LOG_LINE.replace('"', '""')
ROW_START = f'2026-01-15T09:00:01Z,maestro-1,"{QUOTED_LINE}'
ARCHIVE_MIB = 400


def zip_of(tmp_path: Path, *, head: str, filler: str, mib: int, name: str = "export.csv") -> Path:
    """Write a zip whose only member is `head` and then `filler`, again and again."""
    path = tmp_path / "export.zip"
    block = (filler * (MIB // len(filler))).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as member:
        member.write(head.encode())
        for _ in range(mib):
            member.write(block)
    return path


@pytest.mark.parametrize(
    ("head", "filler", "reason"),
    [
        pytest.param(HEADER + ROW_START, "x" * 64, "more than 16 MiB", id="endless-cell"),
        pytest.param(HEADER + ROW_START, "x" * 63 + "\n", "more than 16 MiB", id="endless-quote"),
        pytest.param(HEADER + ROW_START + '"', ",x" * 32, "more than 16 MiB", id="endless-columns"),
        pytest.param(HEADER, f"2026-01-15T09:00:01Z,pod,{'x' * 4071}\n", "inflates to more than 256 MiB", id="rows"),
        pytest.param(LOG_LINE + "\n", "x" * 4095 + "\n", "inflates to more than 256 MiB", id="text"),
    ],
)
def test_archive(head: str, filler: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A zip that inflates a thousand times, in one cell, one row or many -> read to the limit, with the reason"""
    path = zip_of(tmp_path, head=head, filler=filler, mib=ARCHIVE_MIB)
    assert path.stat().st_size < 4 * MIB
    with bounded(mib=600, seconds=60):
        main.call(["trace", "requests", str(path)])
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    "method", [pytest.param(zipfile.ZIP_BZIP2, id="bzip2"), pytest.param(zipfile.ZIP_LZMA, id="lzma")]
)
def test_archive_of_another_method(
    method: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zip of a kilobyte that BZIP2 or LZMA inflates to gigabytes -> inflated in small steps, up to the limit"""
    monkeypatch.setattr(archives, "_INFLATED_BYTES", 64 * MIB)  # a bomb is made faster than one for the real limit
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("a.log", "w") as member:
        member.write(f"{LOG_LINE}\n".encode())
        for _ in range(120):
            member.write(b"x" * MIB)
    assert path.stat().st_size < MIB
    with bounded(mib=80, seconds=60):
        main.call(["trace", "requests", str(path)])
    assert "inflates to more than 64 MiB" in capsys.readouterr().err


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archive_of_any_method_is_read(method: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Logs in a zip of any method -> read as the plain files are; a damaged one is named"""
    folder = write(tmp_path / "plain", [LoggedRequest(work="w1")])
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    main.call(["trace", "requests", str(folder), "-o", "csv"])
    plain = capsys.readouterr().out
    main.call(["trace", "requests", str(path), "-o", "csv"])
    shown = capsys.readouterr()
    assert "w1" in plain
    assert (shown.out, shown.err) == (plain, "")
    data = bytearray(path.read_bytes())
    data[200:230] = bytes(30)
    path.write_bytes(data)
    main.call(["trace", "requests", str(path)])
    assert "unexpected" not in capsys.readouterr().err


def zip_of_members(path: Path, count: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.log", b"x")


def tar_of_members(path: Path, count: int) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for number in range(count):
            info = tarfile.TarInfo(f"{number}.log")
            info.size = 1
            archive.addfile(info, io.BytesIO(b"x"))


@pytest.mark.parametrize(
    ("name", "fill"), [pytest.param("a.zip", zip_of_members, id="zip"), pytest.param("a.tgz", tar_of_members, id="tar")]
)
def test_many_members(
    name: str, fill: Callable[[Path, int], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive of 20,000 members of one byte -> the first 5,000 are read, with a warning that names the limit"""
    fill(tmp_path / name, 20_000)
    with bounded(mib=120, seconds=60):
        main.call(["trace", "requests", str(tmp_path / name)])
    assert f"{name} has more than 5000 members" in capsys.readouterr().err


def test_long_list_of_members(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A zip whose list of members alone takes megabytes -> rejected by the size of the list, unread"""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(150):
            archive.writestr(f"{number}{'x' * 60_000}", b"x")
    with bounded(mib=30):
        main.call(["trace", "requests", str(path)])
    assert "a list of members of more than 8 MiB" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["name", "skipped", "sparse"])
def test_tar(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tar with a name or a directory of 400 MiB, or with a sparse file -> rejected, with the reason"""
    path = tmp_path / "a.tgz"
    info = tarfile.TarInfo("a.log")
    info.size = 400 * MIB
    info.type = {"name": tarfile.GNUTYPE_LONGNAME, "skipped": tarfile.CHRTYPE, "sparse": tarfile.GNUTYPE_SPARSE}[kind]
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    if kind == "skipped":
        header[156:157] = b"Z"  # a type that nobody knows is skipped by its size
    if kind == "sparse":
        header[124:136] = b"%011o\0" % 0
        header[386:398] = header[398:410] = b"%011o\0" % 0
        header[483:495] = b"%011o\0" % (1 << 32)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with gzip.open(path, "wb", 1) as stream:
        stream.write(header)
        for _ in range(0 if kind == "sparse" else 400):
            stream.write(bytes(MIB))
        stream.write(bytes(10_240))
    with bounded(mib=60, seconds=60):
        main.call(["trace", "requests", str(path)])
    reasons = {"name": "a header of more than 4 MiB", "skipped": "inflates to more than 256", "sparse": "a sparse file"}
    assert reasons[kind] in capsys.readouterr().err


def test_nested_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An archive inside of an archive -> not opened, named as no text"""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", bytes(100 * MIB))
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inner.zip", inner.getvalue())
    with bounded(mib=50):
        main.call(["trace", "requests", str(path)])
    assert "a.zip/inner.zip" in capsys.readouterr().err


def test_many_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export with a pod of its own in every row -> ends at the limit of pods, with the reason"""
    path = tmp_path / "export.csv"
    rows = (f"2026-01-15T09:00:01Z,pod-{number},{LOG_LINE.replace(chr(34), chr(39))}\n" for number in range(20_000))
    path.write_text(HEADER + "".join(rows))
    with bounded(mib=300, seconds=60):
        main.call(["trace", "requests", str(path)])
    assert "more than 10000 pods" in capsys.readouterr().err


def test_name_in_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A member of an archive with escape sequences in its name -> its name is escaped"""
    path = zip_of(tmp_path, head=LOG_LINE + "\n", filler=LOG_LINE + "\n", mib=1, name="\x1b[2J\nError: x.log")
    main.call(["trace", "requests", str(path)])
    main.call(["trace", "logs", "check", str(path)])
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\nError: x" not in shown.out + shown.err


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\uff1d"])
def test_formula_in_csv_output(start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A work named like a formula of a spreadsheet -> a text in the CSV; numbers stay numbers"""
    request = LoggedRequest(work=f"{start}cmd|x!A1")
    folder = write(tmp_path, [request])
    target = tmp_path / "out.csv"
    main.call(["trace", "requests", str(folder), "--csv", str(target)])
    (row,) = csv.DictReader(target.read_text().splitlines())
    assert row["work"] == f"'{start}cmd|x!A1"
    assert float(row["duration_ms"]) >= 0
    assert capsys.readouterr().err.startswith("Report written")
