"""What a collection is limited to: one consumer, one work, a window of time. Pure values."""

from dataclasses import dataclass
from datetime import UTC, datetime

from maestropy.diagnose import manifest as manifests


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The limits of a collection; empty for everything."""

    consumer: str = ""
    work: str = ""
    """Any identifier of a work that `maestro trace work` takes without a flag."""
    since: float = 0.0
    """Seconds since 1970; 0 for no limit."""
    until: float = 0.0

    @property
    def since_text(self) -> str:
        """The start of the window, as RFC 3339; empty for none."""
        return _stamp(self.since)

    @property
    def until_text(self) -> str:
        """The end of the window, as RFC 3339; empty for none."""
        return _stamp(self.until)

    def has(self, at: float) -> bool:
        """Return whether a moment is in the window."""
        return at >= self.since and (not self.until or at <= self.until)

    @property
    def model(self) -> manifests.Scope:
        """What the manifest says about it."""
        return manifests.Scope(consumer=self.consumer, work=self.work, since=self.since_text, until=self.until_text)


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).isoformat(timespec="seconds") if at else ""
