"""Archives of strangers, cut short, hostile, of another version or of one side, are read as far as it is safe."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.diagnose import archive, manifest
from maestropy.trace.errors import InputUnreadable
from maestropy.trace.exit_codes import Exit
from maestropy.trace.logs.read.inputs import archives as tar_archives
from tests.unit.diagnose.archives import analysed, lines, of_files, packed, row


def opened(path: Path, folder: Path) -> archive.Opened:
    folder.mkdir()
    with archive.opened(path, folder=folder) as found:
        return found


def test_written_archive_is_read_back_with_its_manifest_first(tmp_path: Path) -> None:
    staged = tmp_path / "staged"
    (staged / "logs").mkdir(parents=True)
    (staged / "logs/a.log").write_text("line\n")
    about = manifest.Manifest(version="1", files={"logs/a.log": 5})
    archive.write(staged, tmp_path / "a.tar.zst", manifest=about, files=["logs/a.log"])
    assert (tmp_path / "a.tar.zst").stat().st_mode & 0o777 == 0o600
    found = opened(tmp_path / "a.tar.zst", tmp_path / "out")
    assert found.manifest == about
    assert found.files == ("logs/a.log",)
    assert found.problems == ()
    assert (found.folder / "logs/a.log").read_text() == "line\n"


def _info(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "info",
    [
        _info("../outside"),
        _info("/etc/outside"),
        _info("logs/../../outside"),
        _info("logs/./a"),
        _info("a\\..\\outside"),
        _info("\x1b[31mred"),
        _info("logs/\u202eevil"),
        _info("x" * 400),
        _info("a/b/c/d/e/f/g/h"),
        _info(".ssh/authorized_keys"),
        _info("link", tarfile.SYMTYPE, "/etc/passwd"),
        _info("hard", tarfile.LNKTYPE, "/etc/passwd"),
        _info("fifo", tarfile.FIFOTYPE),
        _info("device", tarfile.CHRTYPE),
    ],
    ids=lambda info: ascii(info.name)[:24],
)
def test_member_that_no_collection_writes_is_left_out(tmp_path: Path, info: tarfile.TarInfo) -> None:
    good = (tarfile.TarInfo("collector.jsonl"), b"{}\n")
    path = packed(tmp_path / "a.tar.zst", [(info, b"content"), good])
    found = opened(path, tmp_path / "out")
    assert found.files == ("collector.jsonl",)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.tar.zst", "out"]
    assert [entry.name for entry in found.folder.rglob("*")] == ["collector.jsonl"]
    assert all(problem.isprintable() for problem in found.problems)


def test_second_member_of_a_name_and_file_in_place_of_a_folder_are_left_out(tmp_path: Path) -> None:
    members = [(tarfile.TarInfo(name), name.encode()) for name in ("a", "a", "b/c", "b", "a/d")]
    found = opened(packed(tmp_path / "a.tar.zst", members), tmp_path / "out")
    assert found.files == ("a", "b/c")
    assert len(found.problems) == 3


def test_bomb_is_not_inflated(tmp_path: Path) -> None:
    zstd = tar_archives.zstd()
    size = 1 << 30
    with (tmp_path / "bomb.tar.zst").open("wb") as raw, zstd.ZstdFile(raw, "wb") as stream:
        info = tarfile.TarInfo("logs/zeros.log")
        info.size = size
        stream.write(info.tobuf())
        for _ in range(size >> 20):
            stream.write(bytes(1 << 20))
    assert (tmp_path / "bomb.tar.zst").stat().st_size < 1 << 20
    found = opened(tmp_path / "bomb.tar.zst", tmp_path / "out")
    assert found.is_cut
    assert "inflates to more than" in found.problems[0]
    assert (found.folder / "logs/zeros.log").stat().st_size <= 260 << 20


def test_header_that_claims_a_huge_name_is_not_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    good = tarfile.TarInfo("collector.jsonl")
    content = good.tobuf() + info.tobuf() + bytes(1024)
    (tmp_path / "a.tar.zst").write_bytes(tar_archives.zstd().compress(content))
    found = opened(tmp_path / "a.tar.zst", tmp_path / "out")
    assert found.files == ("collector.jsonl",)
    assert found.is_cut


def test_archive_cut_anywhere_is_analysed_as_far_as_it_goes(tmp_path: Path) -> None:
    noise = "".join(f"{number * 7919 % 1000003}\n" for number in range(40_000))
    rows = lines(*(row(number) for number in range(200)))
    whole = of_files(tmp_path / "a.tar.zst", {"database/rows.jsonl": rows, "logs/files/x.log": noise}).read_bytes()
    judged = []
    for share in (0.2, 0.4, 0.6, 0.8, 0.99):
        cut = tmp_path / "cut.tar.zst"
        cut.write_bytes(whole[: int(len(whole) * share)])
        analysis = analysed(cut)
        assert analysis.exit in (Exit.INCONCLUSIVE, Exit.PROBLEM)
        assert "MD-002" in [item.code for item in analysis.findings]
        assert any("cut short" in sentence for sentence in analysis.unknown)
        judged.append(len(analysis.works))
    assert judged == sorted(judged)
    assert judged[-1] == 200


@pytest.mark.parametrize(
    "content",
    [b"", b"\x28\xb5\x2f\xfd", b"no archive at all" * 100, b"PK\3\4" + bytes(100), bytes(2048)],
    ids=["empty", "magic-only", "text", "zip", "zeros"],
)
def test_file_that_is_no_archive_is_rejected_with_a_remedy(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tar.zst").write_bytes(content)
    assert main.call(["diagnose", "analyze", str(tmp_path / "a.tar.zst")]) == 3
    assert "name an archive of `maestro diagnose collect`" in capsys.readouterr().err


def test_missing_file_and_folder_are_rejected(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputUnreadable, match="name an archive"), archive.opened(path, folder=tmp_path / "x"):
            pass


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"schema": 99, "sections": {"new": "shape"}}),
        json.dumps({"schema": 99, "sections": [], "collected_at": "2026-08-20T11:00:00+00:00", "more": {"a": 1}}),
    ],
    ids=["other-shape", "more-fields"],
)
def test_newer_schema_is_analysed_and_named(tmp_path: Path, content: str) -> None:
    members = {manifest.NAME: content.encode(), "database/rows.jsonl": lines(row()).encode()}
    path = packed(tmp_path / "a.tar.zst", ((tarfile.TarInfo(name), data) for name, data in members.items()))
    analysis = analysed(path)
    assert "MD-003" in [item.code for item in analysis.findings]
    assert [work.id for work in analysis.works] == ["id-1"]
    assert any("schema 99" in sentence for sentence in analysis.unknown)
    assert analysis.exit is Exit.INCONCLUSIVE


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"[" * 100_000, b'{"schema": "x"}'], ids=["cut", "list", "deep", "type"]
)
def test_damaged_manifest_does_not_hide_the_rest(tmp_path: Path, content: bytes) -> None:
    members = {manifest.NAME: content, "database/rows.jsonl": lines(row()).encode()}
    path = packed(tmp_path / "a.tar.zst", ((tarfile.TarInfo(name), data) for name, data in members.items()))
    analysis = analysed(path)
    assert [work.id for work in analysis.works] == ["id-1"]
    assert any("no manifest that can be read" in sentence for sentence in analysis.unknown)


def test_damaged_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    odd = ["null", "[1]", "{", '"text"', "[" * 5000, '{"metadata": 1}', '{"id": {}, "consumer_name": []}', "\x00\xff"]
    content = lines(row()) + "\n".join(odd) + "\n"
    kinds = lines(
        {"trace": "kind", "group": 1, "plural": None}, {"trace": "denied"}, {"kind": "Pod", "metadata": {"name": 7}}
    )
    files = {"database/rows.jsonl": content, "clusters/c1/objects.jsonl": kinds, "database/facts.jsonl": content}
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files))
    assert "id-1" in [work.id for work in analysis.works]
    assert any("damaged" in sentence for sentence in analysis.unknown)


def test_texts_of_an_archive_cannot_drive_the_terminal_or_run_in_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script><img src=x onerror=alert(1)>\u202e\"'"
    bad = row(message=evil, applied="False")
    bad["payload"]["metadata"]["name"] = evil
    bad["consumer_name"] = evil
    about = manifest.Manifest(
        version=evil, collected_at="2026-08-20T11:00:00+00:00", scope=manifest.Scope(work=evil),
        sections=[manifest.Section(name=evil, state="failed", reason=evil)],
    )  # fmt: skip
    path = of_files(tmp_path / "a.tar.zst", {"database/rows.jsonl": lines(bad)}, about=about)
    assert main.call(["diagnose", "analyze", str(path)]) == 1
    shown = capsys.readouterr().out
    assert shown.replace("\n", "").isprintable()
    assert main.call(["diagnose", "analyze", str(path), "-o", "html"]) == 1
    page = capsys.readouterr().out
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert main.call(["diagnose", "analyze", str(path), "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["works"][0]["name"] == evil


def test_only_cluster_side_names_the_missing_database(tmp_path: Path) -> None:
    applied = {
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": f"{'a' * 64}-id-1", "uid": "u"}, "spec": {"hubHash": "a" * 64, "manifestWorkName": "id-1"},
    }  # fmt: skip
    analysis = analysed(of_files(tmp_path / "a.tar.zst", {"clusters/c1/appliedmanifestworks.jsonl": lines(applied)}))
    assert [(work.id, work.code) for work in analysis.works] == [("id-1", "MW-100")]
    assert analysis.exit is not Exit.HEALTHY


def test_only_server_side_names_the_missing_clusters_and_logs(tmp_path: Path) -> None:
    analysis = analysed(of_files(tmp_path / "a.tar.zst", {"database/rows.jsonl": lines(row())}))
    assert [work.code for work in analysis.works] == ["MW-100"]
    assert "requests: the archive holds no logs" in analysis.unknown
    assert analysis.exit is Exit.INCONCLUSIVE


def test_only_logs_are_analysed_as_trace_requests_does(tmp_path: Path) -> None:
    log = io.StringIO()
    log.write("I0820 10:00:00.000000       1 x.go:1] nothing of Maestro\n")
    analysis = analysed(of_files(tmp_path / "a.tar.zst", {"logs/files/server.log": log.getvalue()}))
    assert analysis.exit is Exit.INCONCLUSIVE
    assert any(sentence.startswith("requests: no line of Maestro was recognised") for sentence in analysis.unknown)


def test_archive_without_any_known_file_is_inconclusive(tmp_path: Path) -> None:
    analysis = analysed(of_files(tmp_path / "a.tar.zst", {"notes.txt": "hello"}))
    assert analysis.exit is Exit.INCONCLUSIVE
    assert analysis.works == ()
