"""The operation ID, by which a request is traced through all logs.

Pure. A client may send its own; it is checked, because it goes into logs and into extensions of events.
"""

from typing import Final

HEADER: Final = b"x-operation-id"
MAX_LENGTH: Final = 128

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KSUID_EPOCH: Final = 1_400_000_000
_KSUID_LENGTH: Final = 27


def accepted(header: bytes | None) -> str | None:
    """Return the operation ID of the client if it is short printable ASCII, else None."""
    text = (header or b"").decode("latin-1").strip()
    fits = 0 < len(text) <= MAX_LENGTH and text.isascii() and text.isprintable()
    return text if fits else None


def ksuid(seconds: float, random_id: str) -> str:
    """Return a K-sortable id: four bytes of time and the sixteen of the UUID `random_id`, in base 62."""
    stamp = int(seconds) - _KSUID_EPOCH & 0xFFFF_FFFF
    number = stamp << 128 | int(random_id.replace("-", ""), 16)
    digits = []
    for _ in range(_KSUID_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
