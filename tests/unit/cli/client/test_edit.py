"""An editor that leaves no usable file ends the edit with a sentence, and nothing is changed."""

import tempfile
from pathlib import Path
from typing import Any, cast

import pytest

from maestropy.cli.client.bundles import edit
from maestropy.cli.errors import CommandError


class NoClient:
    """Any use of it fails."""


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('rm "$1"', r"the editor .* removed the file .*: nothing was changed; run the command again"),
        ('rm "$1" && mkfifo "$1"', r"cannot be read: it is a named pipe, not a regular file; nothing was changed"),
        ('rm "$1" && mkdir "$1"', r"cannot be read: Is a directory; nothing was changed"),
        (r'printf "\377" > "$1"', r"is not UTF-8 \(byte 0\): save it as UTF-8"),
    ],
)
def test_an_editor_that_spoils_the_file(
    script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    monkeypatch.setenv("MAESTRO_EDITOR", str(editor))
    # The file that the user edited is kept.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(CommandError, match=message):
        edit._Edit(cast("Any", NoClient()), {"id": "1", "manifests": []}).run()
