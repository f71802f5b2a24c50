"""Two collections do not share a folder, and links are not followed; reports do not replace files."""

import os
from pathlib import Path

import pytest

from maestropy.cli.diagnose import analyze
from maestropy.diagnose.collection.staging import Staging, check_free
from maestropy.trace.errors import InvalidArguments


def test_second_collection_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    first = Staging(tmp_path / "a.partial", most_bytes=1)
    with pytest.raises(InvalidArguments, match=rf"another collection is running \(pid {os.getpid()}\)"):
        Staging(tmp_path / "a.partial", most_bytes=1)
    assert first.files() == []
    first.close()
    check_free(tmp_path / "a.partial")
    Staging(tmp_path / "a.partial", most_bytes=1).close()


def test_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "a.partial").symlink_to(tmp_path / "other")
    with pytest.raises(InvalidArguments, match="is a link"):
        Staging(tmp_path / "a.partial", most_bytes=1)
    assert list((tmp_path / "other").iterdir()) == []


def test_report_replaces_no_file_without_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    (tmp_path / "link").symlink_to(kept)
    for out in (kept, tmp_path / "link"):
        assert analyze.analyze_archive(tmp_path / "no.tar.zst", out=out) == 2
        assert "exists already" in capsys.readouterr().err
    assert kept.read_text() == "mine"
    analyze._write("new", tmp_path / "report", force=False)
    assert (tmp_path / "report").stat().st_mode & 0o777 == 0o600
    analyze._write("new", kept, force=True)
    assert kept.read_text() == "new"
