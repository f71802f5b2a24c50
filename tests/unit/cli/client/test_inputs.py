"""Which files `-f` reads."""

from pathlib import Path

import pytest

from maestropy.cli.client import inputs
from maestropy.cli.errors import UsageError


def test_folder_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("kind: B\n---\nkind: C\n")
    (tmp_path / "a.json").write_text('{"kind": "A"}')
    (tmp_path / "notes.txt").write_text("not YAML: [")
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "d.yaml").write_text("kind: D\n")
    assert [document["kind"] for document in inputs.documents(tmp_path)] == ["A", "B", "C"]


def test_folder_without_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no file that ends in \.json, \.yaml, \.yml"):
        inputs.documents(tmp_path)
