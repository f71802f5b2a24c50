"""Show messages on standard error and ask on standard input; standard output is for reports only."""

import asyncio
import sys

from maestropy.cli import screen


class Terminal:
    """The terminal of this process, if it has one."""

    @property
    def is_present(self) -> bool:
        """Whether standard input is a terminal."""
        return sys.stdin is not None and sys.stdin.isatty()

    def notify(self, text: str) -> None:
        """Print a message."""
        screen.write_error(f"{text}\n")
        sys.stderr.flush()

    async def ask(self, question: str) -> str:
        """Print a question and return the line that the user types; empty at the end of the input."""
        screen.write_error(question)
        sys.stderr.flush()
        # Wait in the event loop, not in readline, so that Ctrl-C works at once.
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())
        return sys.stdin.readline()
