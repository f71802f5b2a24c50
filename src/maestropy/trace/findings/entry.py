"""One entry of the catalogue of findings, in the same shape for all of them: MT, MW, HCP and MD."""

from dataclasses import dataclass
from typing import Literal

from maestropy.trace.exit_codes import Exit

Severity = Literal["error", "warn", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a code means, how to recognise it in raw logs and in the database, and what to do."""

    code: str
    severity: Severity
    title: str
    cause: str
    """What it means, and what usually is behind it."""
    advice: tuple[str, ...]
    """What to do; commands may have {placeholders}, which a report about a work fills in."""
    phrases: tuple[str, ...] = ()
    """Texts to search for in raw logs; components write them literally."""
    normal: tuple[str, ...] = ()
    """The lines that are there when all is well."""
    sql: tuple[str, ...] = ()
    """The names of the checks in the database."""
    name: str = ""
    """The verdict on a work in one or two words."""
    exit: Exit = Exit.PROBLEM
    """How a command that reports only this ends."""

    @property
    def stage(self) -> int:
        """The stage of a request that it belongs to; 0 for findings about something else."""
        return int(self.code[3]) if self.code.startswith("MT-") else 0

    @property
    def hop(self) -> str:
        """The hop of a hosted cluster that it belongs to; empty for findings about something else."""
        return _HOPS[self.code[4]] if self.code.startswith("HCP-") else ""


_HOPS = {
    "0": "the walk as a whole", "1": "the frontend (ARM)", "2": "the backend", "3": "Clusters Service", "4": "Maestro",
    "5": "the Maestro agent", "6": "ManifestWorks and the ManagedCluster", "7": "the HostedCluster",
    "8": "the control plane", "9": "node pools",
}  # fmt: skip
