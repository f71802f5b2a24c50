"""Ask before anything is changed, or done on a critical database. Nobody to ask means no."""

from typing import Protocol

from maestropy.trace.errors import Declined


class Consent(Protocol):
    """Somebody who can be told and asked."""

    @property
    def is_present(self) -> bool:
        """Whether there is somebody at a terminal."""
        ...

    def tell(self, text: str) -> None:
        """Say something, beside the report."""
        ...

    async def answer(self, question: str) -> str:
        """Return what somebody types; empty at the end of the input."""
        ...


async def agree(consent: Consent, question: str, *, assumed: bool, flag: str) -> bool:
    """Return whether somebody says yes; `assumed` is a yes given beforehand by `flag`."""
    if assumed:
        consent.tell(f"{question} (yes/no): yes, by {flag}")
        return True
    if not consent.is_present:
        raise Declined(f"{question} Nobody is at a terminal to say yes; repeat with {flag}")
    return (await consent.answer(f"{question} (yes/no): ")).strip().lower() in {"y", "yes"}
