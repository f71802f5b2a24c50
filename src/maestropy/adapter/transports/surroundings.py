"""Read the time, environment variables and files for tasks."""

import os
from contextlib import suppress
from pathlib import Path

from maestropy.adapter.decide.effects import ReadSurroundings, Surroundings
from maestropy.aio.clock import Clock
from maestropy.untrusted import files
from maestropy.untrusted.errors import InputRejected
from maestropy.wire import timestamps


def read(effect: ReadSurroundings, *, clock: Clock | None = None) -> Surroundings:
    """Return what an effect asks for; what is not set or cannot be read is left out."""
    contents: dict[str, str] = {}
    for path in effect.files:
        with suppress(OSError, UnicodeDecodeError, InputRejected):
            contents[path] = files.read_text(Path(path), most=files.MIB)
    return Surroundings(
        now=timestamps.from_datetime((clock or Clock()).now()).rfc3339(),
        variables={name: os.environ[name] for name in effect.variables if name in os.environ},
        files=contents,
    )
