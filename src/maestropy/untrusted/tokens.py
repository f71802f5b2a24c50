"""Read a bearer token from a file; an error names the file, never the token."""

import re
from pathlib import Path
from typing import Final

from maestropy.untrusted import files
from maestropy.untrusted.errors import InputRejected

HIDDEN: Final = "[redacted]"
_TOKEN: Final = re.compile(rb"[!-~]+")
_SHORTEST: Final = 4
"""A shorter token would be found everywhere in a text."""


def hide(text: str, token: str) -> str:
    """Return a text without the token: a server, or a proxy before it, may repeat the headers of a request."""
    return text.replace(token, HIDDEN) if len(token) >= _SHORTEST else text


def read(path: Path) -> str:
    """Return the token of a file; raises InputRejected, also for an empty file: a request without token is another."""
    try:
        token = files.read(path, most=files.CONFIG_BYTES).strip()
    except OSError as error:
        raise InputRejected(f"the token file {path} cannot be read: {error.strerror}; check the path") from error
    except InputRejected as error:
        raise InputRejected(f"the token file {error}; check the path") from error
    if not token:
        raise InputRejected(f"the token file {path} is empty; write the token into it, or name no token file")
    if not _TOKEN.fullmatch(token):
        raise InputRejected(
            f"the token file {path} holds no token: it has spaces, line breaks or characters that are not ASCII; "
            "write the bare token into it"
        )
    return token.decode("ascii")
