"""Cache the public keys of a token issuer.

Keys come from a file or an https URL. They are read again for an unknown key ID and after `MAX_AGE_SECONDS`; if a read
fails, the last valid set stays in use. Symmetric keys are never accepted.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import jwt
import msgspec

from maestropy.server.auth.review_cache import Clock

REFRESH_SECONDS: Final = 60.0
"""Unknown key IDs cause one read in this time, so that invented IDs do not load the issuer."""

RETRY_SECONDS: Final = 5.0
"""Without any keys every client is rejected, so the keys are read more often."""

MAX_AGE_SECONDS: Final = 600.0
"""A key that the issuer withdrew is dropped after this time."""

FETCH_SECONDS: Final = 5.0

SAFE_ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Public-key algorithms only: with `none` or HS* a client could sign with the public key."""


class KeysUnavailable(Exception):
    """No key set could be read; the text names its location."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The usable keys of one key set, by key ID and algorithm."""

    keys: Mapping[tuple[str, str], jwt.PyJWK]

    def knows(self, kid: str | None) -> bool:
        """Return whether a key has this ID; None means the only key."""
        return self._resolve(kid) in {key_id for key_id, _ in self.keys}

    def find(self, kid: str | None, *, algorithm: str) -> jwt.PyJWK | None:
        """Return the key for a signature."""
        name = self._resolve(kid)
        return None if name is None else self.keys.get((name, algorithm))

    def _resolve(self, kid: str | None) -> str | None:
        names = {key_id for key_id, _ in self.keys}
        return next(iter(names)) if kid is None and len(names) == 1 else kid


def parse_keys(body: bytes, *, algorithms: tuple[str, ...]) -> KeySet:
    """Parse a JSON Web Key Set without the keys that no configured algorithm can use."""
    document = msgspec.json.decode(body, type=dict[str, object])
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise ValueError("a JSON Web Key Set has a list named keys")  # noqa: TRY004  one family for bad content
    keys: dict[tuple[str, str], jwt.PyJWK] = {}
    for key in entries:
        if not isinstance(key, dict) or key.get("use", "sig") != "sig":
            continue
        for algorithm in algorithms:
            if key.get("alg", algorithm) != algorithm:
                continue
            try:
                keys[str(key.get("kid", "")), algorithm] = jwt.PyJWK(key, algorithm=algorithm)
            except jwt.PyJWTError:
                continue  # the key has another type than the algorithm needs
    if not keys:
        raise ValueError(f"no key fits {', '.join(algorithms)}")
    return KeySet(keys=keys)


class SigningKeys:
    """The last read keys of the issuer. For one event loop."""

    def __init__(
        self, location: str, *, algorithms: tuple[str, ...], clock: Clock, on_problem: Callable[[str], None]
    ) -> None:
        """`location` is a file path or an https URL; plain http is accepted only for localhost."""
        self._location = location
        self._is_url = _is_url(location)
        self._algorithms = algorithms
        self._clock = clock
        self._on_problem = on_problem
        self._reading = asyncio.Lock()
        self._keys: KeySet | None = None
        self._tried_at: float | None = None

    async def find(self, kid: str | None, *, algorithm: str) -> jwt.PyJWK | None:
        """Return the key of a signature; reads the key set again if it is unknown or old."""
        # Tokens with a known key never wait for a read.
        if not self._knows(kid) or (self._is_due(kid) and not self._reading.locked()):
            async with self._reading:
                if self._is_due(kid):
                    await self._read()
                    self._tried_at = self._clock()
        if self._keys is None:
            raise KeysUnavailable(f"no signing keys could be read from {self._location}")
        return self._keys.find(kid, algorithm=algorithm)

    def _knows(self, kid: str | None) -> bool:
        return self._keys is not None and self._keys.knows(kid)

    def _is_due(self, kid: str | None) -> bool:
        if self._tried_at is None:
            return True
        waited = self._clock() - self._tried_at
        if self._keys is None:
            return waited >= RETRY_SECONDS
        return waited >= (MAX_AGE_SECONDS if self._keys.knows(kid) else REFRESH_SECONDS)

    async def _read(self) -> None:
        try:
            body = await _fetch(self._location) if self._is_url else _read_file(self._location)
            self._keys = parse_keys(body, algorithms=self._algorithms)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            kept = "the last valid keys stay in use" if self._keys else "every client is rejected until then"
            self._on_problem(f"signing keys cannot be read from {self._location} ({error}); {kept}")


def _read_file(path: str) -> bytes:
    return Path(path).read_bytes()


def _is_url(location: str) -> bool:
    parts = urlsplit(location)
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError(f"{location} is not encrypted: the keys could be replaced on the network; use https or a file")
    return parts.scheme in ("http", "https")


async def _fetch(url: str) -> bytes:
    # Imported here: most servers read no keys over the network.
    import httpx  # noqa: PLC0415  the reason is the line above

    try:
        async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient() as client:
            response = await client.get(url)
            response.raise_for_status()
            return response.content
    except TimeoutError as error:
        raise OSError(f"no answer within {FETCH_SECONDS:g}s") from error
    except httpx.HTTPStatusError as error:
        raise OSError(f"HTTP {error.response.status_code}") from error
    except httpx.HTTPError as error:
        raise OSError(type(error).__name__) from error
