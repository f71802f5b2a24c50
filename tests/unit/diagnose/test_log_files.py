"""Log files are read whatever their encoding and form, and those that are left out are named with the reason."""

import csv
import os
import threading
from pathlib import Path

import pytest

from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.sources import logs
from maestropy.diagnose.collection.staging import Staging
from maestropy.trace.errors import InputUnreadable

RECORD = 'I1117 10:00:00.000000       1 x.go:1] "Publishing" resourceID="r"'


def collect(tmp_path: Path, *paths: Path, stop: threading.Event | None = None) -> tuple[dict[str, str], str]:
    staging = Staging(tmp_path / "staged", most_bytes=1 << 20)
    _, problems = logs.collect_files([str(path) for path in paths], staging, scope=Scope(), now=0, stop=stop)
    found = {name: (staging.folder / name).read_text(encoding="utf-8", errors="replace") for name in staging.files()}
    return found, "; ".join(problems)


def test_cells_of_an_export_are_redacted_and_stay_cells(tmp_path: Path) -> None:
    export = tmp_path / "export.csv"
    cells = ['{"msg":"login","password":"hunter2"}', 'the "password" is "hunter2", is it', "a\npassword: hunter2\nb"]
    with export.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["timestamp", "pod", "log"], *(["2026-11-17T10:00:00Z", "p", cell] for cell in cells)]
        )
    found, problems = collect(tmp_path, export)
    assert problems == ""
    text = found["logs/files/export.csv"]
    assert "hunter2" not in text
    rows = list(csv.reader(text.splitlines(keepends=True)))
    assert [len(row) for row in rows] == [3, 3, 3, 3]
    assert rows[1][2] == '{"msg":"login","password":"[redacted]"}'
    assert rows[3][2].split("\n")[::2] == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_wide_encoding_is_read_by_its_mark(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    (tmp_path / "a.log").write_bytes(f"{mark}{RECORD}\r\npassword=hunter2\r\n".encode(encoding))
    found, problems = collect(tmp_path, tmp_path / "a.log")
    assert found == {"logs/files/a.log": f"{RECORD}\npassword=[redacted]\n"}
    assert problems == ""


def test_left_out_files_are_named_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "good.log").write_text(RECORD)
    (folder / "nul.log").write_bytes(b"\0" * 1000)
    os.mkfifo(folder / "pipe.log")
    (folder / "other.txt").write_text("a shopping list\n")
    (folder / "kube.yaml").write_text("x: 1\n")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: {token: hunter2}\n")
    found, problems = collect(tmp_path, folder, kubeconfig)
    assert list(found) == ["logs/files/good.log"]
    for text in ("nul.log is left out: it holds NUL", "pipe.log is left out: it is a pipe", "other.txt is left out",
                 "kubeconfig is left out: it is a kubeconfig"):  # fmt: skip
        assert text in problems


def test_secret_in_the_name_of_a_file_is_not_in_its_name_in_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "server-password=hunter2.log"
    path.write_text(RECORD)
    found, _ = collect(tmp_path, path)
    assert list(found) == ["logs/files/server-password-redacted-.log"]


def test_stop_ends_the_copy_within_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"{RECORD}\n" * 10)
    stop = threading.Event()
    stop.set()
    with pytest.raises(InputUnreadable, match="stopped"):
        collect(tmp_path, tmp_path / "a.log", stop=stop)


def test_other_files_of_a_folder_are_neither_opened_nor_named(tmp_path: Path) -> None:
    folder = tmp_path / "up"
    folder.mkdir()
    (folder / "server.log").write_text(RECORD)
    (folder / "kubeconfig").write_text("kind: Config\nusers: []\n")
    (folder / "16485").write_bytes(b"\0" * 100)
    (folder / "postgres.log").write_text("2026-11-17 10:00:00.000 UTC [1] LOG:  ready\n")
    found, problems = collect(tmp_path, folder)
    assert (list(found), problems) == (["logs/files/server.log"], "")
