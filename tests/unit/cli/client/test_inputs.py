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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory; check the path"),
        (b"", "is empty"),
        (b"a: [\n", "line 2, column 1"),
        (b"a: 1\na: 2\n", "line 2"),
        (b"\xff\xfe\xff", "is not UTF-8"),
        (b"text\n", "document 1 is not an object"),
    ],
    ids=["missing", "empty", "not-yaml", "repeated-key", "not-utf-8", "no-object"],
)
def test_file_that_cannot_be_used_is_a_usage_error(content: bytes | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "work.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        inputs.documents(file)


def test_folder_without_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no file that ends in \.json, \.yaml, \.yml"):
        inputs.documents(tmp_path)
