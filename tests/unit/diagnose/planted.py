"""200 secrets that look like those of real systems, the same in every run; and how to search for them."""

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from maestropy.trace.logs.read.inputs import archives

_LETTERS = string.ascii_letters + string.digits


def _text(chance: random.Random, length: int, letters: str = _LETTERS) -> str:
    return "".join(chance.choices(letters, k=length))


def _bytes(chance: random.Random, length: int) -> bytes:
    return bytes(chance.randrange(256) for _ in range(length))


def _jwt(chance: random.Random) -> str:
    parts = ['{"alg":"RS256","typ":"JWT"}', f'{{"sub":"{_text(chance, 12)}"}}']
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, base64.urlsafe_b64encode(_bytes(chance, 32)).decode().rstrip("=")])


_FORMATS: tuple[Callable[[random.Random], str], ...] = (
    lambda chance: _text(chance, 32),
    lambda chance: base64.b64encode(_bytes(chance, 32)).decode(),
    lambda chance: base64.urlsafe_b64encode(_bytes(chance, 30)).decode(),
    lambda chance: _bytes(chance, 24).hex(),
    lambda chance: f"ghp_{_text(chance, 36)}",
    lambda chance: f"AKIA{_text(chance, 16, string.ascii_uppercase + string.digits)}",
    _jwt,
    lambda chance: f"sk_live_{_text(chance, 24)}",
    lambda chance: f"AIza{_text(chance, 35)}",
    lambda chance: f"Pa{_text(chance, 8)}!9#{_text(chance, 4)}",
    lambda chance: f"glpat-{_text(chance, 20)}",
    lambda chance: f"xoxb-{_text(chance, 12, string.digits)}-{_text(chance, 24)}",
    lambda chance: f"sha256~{_text(chance, 43)}",
    lambda chance: f"{_text(chance, 24)}=={_text(chance, 8)}",
    lambda chance: f"hvs.{_text(chance, 40)}",
    lambda chance: base64.b64encode(f"-----BEGIN PRIVATE KEY-----{_text(chance, 30)}".encode()).decode(),
)


def secrets(count: int = 200) -> list[str]:
    chance = random.Random(20261117)
    found = [_FORMATS[number % len(_FORMATS)](chance) for number in range(count)]
    assert len(set(found)) == count
    assert not any(uuid_like(text) for text in found)
    return found


def uuid_like(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def leaked(archive: Path, planted: list[str]) -> list[str]:
    """Return the secrets that stand anywhere in an archive: as they are, escaped, in base64, or in part."""
    with archives.zstd().open(archive, "rb") as stream:
        content = stream.read()
    return [secret for secret in planted if any(form in content for form in _forms(secret))]


def _forms(secret: str) -> Iterator[bytes]:
    encoded = secret.encode()
    yield encoded
    yield base64.b64encode(encoded).rstrip(b"=")[:-1]
    yield encoded[: max(12, len(encoded) * 2 // 3)] if not secret.startswith(("ey", "LS0t")) else encoded
    yield encoded[-max(12, len(encoded) // 2) :]
