"""Commands whose flags are derived from settings, such as `maestro server`.

They parse their flags as Go does and without cyclopts, which makes them start faster. `settings_help` renders their
help, `settings_apps` provides their completion.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
    removed: Mapping[str, str] = field(default_factory=dict)
    """Flags that only older versions of the Go command have, and where their purpose is served now; empty: nowhere."""

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command with `arguments`, or print its help."""
        line = read(arguments, self.flags.values())
        if not _HELP.isdisjoint(line.remaining):
            from maestropy.cli.parsing import settings_help

            flags = list(self.flags.values())
            sys.stdout.write(settings_help.page(self.name, text=self.text, flags=flags, examples=self.examples))
            return 0
        if line.remaining:
            complaint = self._removed_flags(line.remaining) or _complaint(line.remaining[0], self.flags)
            raise UsageError(f"{complaint}; see `maestro {self.name} --help`")
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

    def _removed_flags(self, arguments: Iterable[str]) -> str:
        """Return what to do about flags of older Go versions: all at once, since a chart sets several of them."""
        written = {name.replace("_", "-"): name for name in map(_name, arguments)}
        found = [name for name in written if name in self.removed]
        if not found:
            return ""
        names = ", ".join(written[name] for name in found)
        subject = f"{names} is a flag" if len(found) == 1 else f"{names} are flags"
        instead = "; ".join(dict.fromkeys(filter(None, (self.removed[name] for name in found))))
        remedy = f"leave {'it' if len(found) == 1 else 'them'} out" + (f" ({instead})" if instead else "")
        return f"{subject} of older Go Maestro without effect; {remedy}"


def read(arguments: Sequence[str], flags: Iterable[Flag]) -> go_flags.CommandLine:
    """Parse `arguments` as Go does."""
    all_flags = list(flags)
    switches = {flag.name for flag in all_flags if flag.is_switch}
    return go_flags.read(arguments, switches=switches, valued={flag.name for flag in all_flags} - switches)


def _complaint(argument: str, flags: Iterable[str]) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument}: this command takes only flags"
    import difflib

    name = _name(argument)
    close = difflib.get_close_matches(name, list(flags), n=1)
    return f"Unknown option: {name}" + (f". Did you mean {close[0]}?" if close else "")


def _name(argument: str) -> str:
    """Return a flag without its value, which may be a secret."""
    return argument.partition("=")[0]
