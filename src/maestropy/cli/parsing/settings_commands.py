"""Commands whose flags are derived from settings, such as `maestro server`.

They parse their flags as Go does and without cyclopts, which makes them start faster. `settings_help` renders their
help, `settings_apps` provides their completion.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from maestropy.cli.errors import UsageError
from maestropy.cli.parsing import go_flags
from maestropy.flags import Flag

_HELP = {"--help", "-h"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsCommand:
    """One command; `execute` is called with the given flags and their values."""

    name: str
    flags: Mapping[str, Flag]
    execute: Callable[[Mapping[str, str]], int]
    text: str
    examples: str

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command with `arguments`, or print its help."""
        line = read(arguments, self.flags.values())
        if not _HELP.isdisjoint(line.remaining):
            from maestropy.cli.parsing import settings_help

            flags = list(self.flags.values())
            sys.stdout.write(settings_help.page(self.name, text=self.text, flags=flags, examples=self.examples))
            return 0
        for argument in line.remaining:
            raise UsageError(f"{_complaint(argument, self.flags)}; see `maestro {self.name} --help`")
        if line.ignored:
            sys.stderr.write(
                f"warning: {', '.join(line.ignored)} without effect: the log goes to standard error, not to files\n"
            )
        values: dict[str, str] = {}
        for name, value in line.flags.items():
            if value is None:
                raise UsageError(f"{name} requires an argument; see `maestro {self.name} --help`")
            values[name] = value
        return self.execute(values)


def read(arguments: Sequence[str], flags: Iterable[Flag]) -> go_flags.CommandLine:
    """Parse `arguments` as Go does."""
    all_flags = list(flags)
    switches = {flag.name for flag in all_flags if flag.is_switch}
    return go_flags.read(arguments, switches=switches, valued={flag.name for flag in all_flags} - switches)


def _complaint(argument: str, flags: Iterable[str]) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument}: this command takes only flags"
    import difflib

    # Without the value, which may be a secret.
    name = argument.partition("=")[0]
    close = difflib.get_close_matches(name, list(flags), n=1)
    return f"Unknown option: {name}" + (f". Did you mean {close[0]}?" if close else "")
