"""Ask for confirmation before anything is changed or a critical database is queried. Without a terminal: no."""

from typing import Protocol

from maestropy.trace.errors import Declined


class Confirmer(Protocol):
    """A terminal that shows messages and asks for confirmation."""

    @property
    def is_present(self) -> bool:
        """Whether a person can be asked."""

    def notify(self, text: str) -> None:
        """Show a message, separate from the report."""

    async def ask(self, query: str) -> str:
        """Return the line that the user types; empty at the end of the input."""


class NoConfirmer:
    """Confirms nothing and shows nothing: for programs, where no person can be asked."""

    is_present = False

    def notify(self, text: str) -> None:
        """Show nothing."""

    async def ask(self, query: str) -> str:
        del query
        return ""


async def confirm(confirmer: Confirmer, query: str, *, assumed: bool, flag: str) -> bool:
    """Return whether the user confirms; `assumed` is a confirmation given beforehand by `flag`."""
    if assumed:
        confirmer.notify(f"{query} (yes/no): yes, by {flag}")
        return True
    if not confirmer.is_present:
        raise Declined(f"{query} There is no terminal to confirm it; repeat with {flag}")
    return (await confirmer.ask(f"{query} (yes/no): ")).strip().lower() in {"y", "yes"}
