"""Commands made of flags alone, such as `maestro server`: what they accept is read from the settings.

They read their words without the library that the other commands use: as Go does, and at once. Their help is written
by `flaghelp`, their completion by `flagapps`.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from maestropy.cli import goflags
from maestropy.cli.failure import UsageError
from maestropy.flags import Flag

_HELP = {"--help", "-h"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command; `act` gets the flags that were given, each with its text."""

    name: str
    flags: Mapping[str, Flag]
    act: Callable[[Mapping[str, str]], int]
    text: str
    examples: str

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command with `arguments`, or explain it."""
        line = read(arguments, self.flags.values())
        if not _HELP.isdisjoint(line.words):
            from maestropy.cli import flaghelp

            flags = list(self.flags.values())
            sys.stdout.write(flaghelp.page(self.name, text=self.text, flags=flags, examples=self.examples))
            return 0
        for word in line.words:
            raise UsageError(f"{_complaint(word, self.flags)}; see `maestro {self.name} --help`")
        given: dict[str, str] = {}
        for name, value in line.flags.items():
            if value is None:
                raise UsageError(f"{name} requires an argument; see `maestro {self.name} --help`")
            given[name] = value
        return self.act(given)


def read(arguments: Sequence[str], flags: Iterable[Flag]) -> goflags.Line:
    """Return what `arguments` say, as Go reads them."""
    known = list(flags)
    switches = {flag.name for flag in known if flag.is_switch}
    return goflags.read(arguments, switches=switches, valued={flag.name for flag in known} - switches)


def _complaint(word: str, flags: Iterable[str]) -> str:
    if not word.startswith("-"):
        return f"{word} is a word too many: this command takes only flags"
    import difflib

    # Without what follows the equals sign: it may be a secret.
    name = word.partition("=")[0]
    close = difflib.get_close_matches(name, list(flags), n=1)
    return f"Unknown option: {name}" + (f". Did you mean {close[0]}?" if close else "")
