"""Describe what is wrong with a HyperFleet task or deployment file: the field, the problem and the remedy. Pure."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProblem:
    """One problem that HyperFleet's loader would report, or a warning."""

    path: str
    """The field, such as `resources[0].manifest`; empty for the whole file."""
    message: str
    """What is wrong, in the words of HyperFleet's loader where it has some."""
    remedy: str = ""
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text}; {self.remedy}" if self.remedy else text


def error(path: str, message: str, remedy: str = "") -> LoadProblem:
    """Return a problem that keeps the file from being loaded."""
    return LoadProblem(path=path, message=message, remedy=remedy)


def warning(path: str, message: str, remedy: str = "") -> LoadProblem:
    """Return a problem that HyperFleet's loader only logs."""
    return LoadProblem(path=path, message=message, remedy=remedy, level="warning")
