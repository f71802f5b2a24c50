"""Encrypt what a browser keeps for the server, and spread it over cookies.

A sealed text can be neither read nor changed by the browser or by another site, and one that was made for another
purpose, client or issuer does not open. The key comes from the client secret, which all instances share, so that none
keeps sessions. It is derived slowly, because whoever has a cookie can try secrets.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES: Final = 12
_PART: Final = 3800
"""Browsers drop cookies of more than four kilobytes."""
MOST_PARTS: Final = 4


class TooLarge(Exception):
    """The text does not fit into the cookies."""


class Seal:
    """Seals and opens values."""

    def __init__(self, secret: str, *, issuer: str, client_id: str, random: Callable[[int], bytes]) -> None:
        self._context = orjson.dumps([issuer, client_id])
        salt = hashlib.sha256(b"maestro console" + self._context).digest()
        self._cipher = AESGCM(hashlib.scrypt(secret.encode(), salt=salt, n=1 << 14, r=8, p=1, dklen=32))
        self._random = random

    def close(self, purpose: str, value: Mapping[str, Any]) -> str:
        """Return a value as a sealed text."""
        nonce = self._random(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, orjson.dumps(value), self._bound_to(purpose))
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, purpose: str, text: str) -> dict[str, Any] | None:
        """Return the value of a sealed text; None if it was not sealed here for this purpose."""
        try:
            sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            plain = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._bound_to(purpose))
        except (binascii.Error, ValueError, InvalidTag):
            return None
        value: dict[str, Any] = orjson.loads(plain)
        return value

    def _bound_to(self, purpose: str) -> bytes:
        return purpose.encode() + b"\0" + self._context


def split(name: str, text: str) -> dict[str, str]:
    """Return cookies that hold a text; raises `TooLarge`."""
    count = -(-len(text) // _PART)
    if count > MOST_PARTS:
        raise TooLarge
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    # The first part has the number of parts: one that is left of an older, longer session is not taken.
    return {part_name(name, index): f"{count}{part}" if index == 0 else part for index, part in enumerate(parts)}


def join(name: str, cookies: Mapping[str, str]) -> str:
    """Return the text of cookies; empty if a part is missing."""
    first = cookies.get(name, "")
    if first[:1] not in tuple("1234"):
        return ""
    others = [cookies.get(part_name(name, index), "") for index in range(1, int(first[0]))]
    return first[1:] + "".join(others) if all(others) else ""


def part_name(name: str, index: int) -> str:
    """Return the name of one cookie of several."""
    return name if index == 0 else f"{name}.{index}"
