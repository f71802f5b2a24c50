"""Somebody at a terminal: told on standard error, asked on standard input. Reports alone go to standard output."""

import asyncio
import sys


class Terminal:
    """This process's terminal, if it has one."""

    @property
    def is_present(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin is not None and sys.stdin.isatty()

    def tell(self, text: str) -> None:
        """Say something."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    async def answer(self, question: str) -> str:
        """Return the line somebody types; empty at the end of the input."""
        sys.stderr.write(question)
        sys.stderr.flush()
        # Waiting in the loop, not in readline: Ctrl-C is heard at once.
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())
        return sys.stdin.readline()
