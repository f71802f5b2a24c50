"""The manifest of an archive: what was collected, what was not and why, and the version of the layout. Values only."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

SCHEMA: Final = 1
"""The version of the layout; it changes when a file moves or changes its meaning. Additions do not change it."""
NAME: Final = "manifest.json"

State = Literal["collected", "partial", "failed", "skipped"]


class Section(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One part of a collection, such as the database or one cluster."""

    name: str
    state: State
    reason: str = ""
    """Why it is partial, failed or skipped, with the remedy."""
    files: list[str] = []
    items: int = 0
    seconds: float = 0.0


class Cluster(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A cluster that was asked for."""

    label: str
    folder: str
    consumer: str = ""
    problem: str = ""
    """Why it could not be read; empty if it could."""


class Scope(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the collection was limited to; empty for everything."""

    consumer: str = ""
    work: str = ""
    since: str = ""
    until: str = ""


class Manifest(msgspec.Struct, kw_only=True):
    """What an archive contains."""

    schema: int = SCHEMA
    tool: str = "maestro diagnose"
    version: str = ""
    """Of maestropy that collected."""
    started_at: str = ""
    collected_at: str = ""
    """The moment that ages are computed for."""
    scope: Scope = msgspec.field(default_factory=Scope)
    sections: list[Section] = []
    clusters: list[Cluster] = []
    hidden: dict[str, int] = {}
    """How many values were redacted, by the reason."""
    is_anonymised: bool = False
    files: dict[str, int] = {}
    """Sizes of all files by path."""

    def section(self, name: str) -> Section | None:
        """Return the section of that name."""
        return next((section for section in self.sections if section.name == name), None)


def unknown(manifest: Manifest) -> Iterator[str]:
    """Yield what was not, or not wholly, collected, and notes on what was; one sentence for each section."""
    for section in manifest.sections:
        if section.reason:
            state = {"skipped": "not collected", "collected": "note"}.get(section.state, section.state)
            yield f"{section.name} ({state}): {section.reason}"


class _Version(msgspec.Struct):
    schema: int


def decode(content: bytes) -> Manifest:
    """Read a manifest, also of a newer schema as far as it has the same fields; raise ValueError otherwise."""
    try:
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        try:
            newer = msgspec.json.decode(content, type=_Version).schema
        except msgspec.MsgspecError:
            raise ValueError(f"{NAME} is no manifest: {error}") from error
        if newer <= SCHEMA:
            raise ValueError(f"{NAME} is damaged: {error}") from error
        return Manifest(schema=newer)


def encode(manifest: Manifest) -> bytes:
    """Write a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
