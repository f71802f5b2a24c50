"""Files of others: named pipes, byte order marks, other encodings, tokens."""

import os
from pathlib import Path

import pytest

from maestropy.untrusted import files, tokens
from maestropy.untrusted.errors import InputRejected


def test_a_named_pipe_is_rejected_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(OSError, match="it is a named pipe, not a regular file"):
        files.read(path, most=100)


def test_a_pipe_of_the_shell_is_read() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"kind: ConfigMap")
        os.close(writing)
        assert files.read(Path(f"/dev/fd/{reading}"), most=100) == b"kind: ConfigMap"
    finally:
        os.close(reading)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa: b")
    assert files.read_text(path, most=100) == "a: b"


def test_another_encoding_is_named_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a: \xe9")
    with pytest.raises(UnicodeDecodeError) as caught:
        files.read_text(path, most=100)
    assert str(caught.value) == "it is not UTF-8 (byte 3); save it as UTF-8"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "is empty; write the token into it", id="empty"),
        pytest.param(b" \n", "is empty; write the token into it", id="blank"),
        pytest.param(b"hunter 2", "holds no token: it has spaces", id="two-words"),
        pytest.param(b"hunter\xff", "holds no token: it has spaces, line breaks or characters", id="not-ascii"),
    ],
)
def test_a_file_without_a_token_is_named_and_not_quoted(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(InputRejected, match=reason) as caught:
        tokens.read(path)
    assert str(path) in str(caught.value)
    assert "hunter" not in str(caught.value)
