"""Parse a command line as the Go commands do. Pure.

Go's syntax: `--flag=value`, `--flag value`; a switch is `--switch` or `--switch=false` and never takes the next
argument; verbosity is `-v 4`, `-v=4`, `-v4` or `--v=4`; the last of repeated flags wins; klog's flags are ignored, and
so is `--kubeconfig` where a command has none, since a library gives it to every Go command. In flag names `_` equals
`-`, as in the Go agent; no flag of the Go server depends on the difference.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

# klog's other flags configure files and buffers that we do not have. The switches among them take no value.
_KLOG_SWITCHES = frozenset(
    {
        "--logtostderr",
        "--alsologtostderr",
        "--add-dir-header",
        "--legacy-stderr-threshold-behavior",
        "--one-output",
        "--skip-headers",
        "--skip-log-headers",
    }
)
_KLOG_VALUES = frozenset(
    {
        "--alsologtostderrthreshold",
        "--log-backtrace-at",
        "--log-dir",
        "--log-file",
        "--log-file-max-size",
        "--log-flush-frequency",
        "--stderrthreshold",
        "--vmodule",
    }
)


@dataclass(slots=True)
class CommandLine:
    """A parsed command line: every known flag once, with None for a missing value, and the remaining arguments."""

    flags: dict[str, str | None] = field(default_factory=dict)
    remaining: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Flags of klog that would send the log elsewhere, as they were written, without their values."""

    def put(self, name: str, value: str | None) -> None:
        # Removed first, so that the last one given is also the last in order.
        self.flags.pop(name, None)
        self.flags[name] = value


def read(arguments: Sequence[str], *, switches: Collection[str], valued: Collection[str]) -> CommandLine:
    """Parse `arguments`; those that are not known flags are kept in `remaining`."""
    line = CommandLine()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            line.remaining += [argument, *rest]
            break
        name, has_value, value = _split(argument)
        if _redirects(name, value):
            line.ignored.append(argument.partition("=")[0])
        if name in _KLOG_SWITCHES:
            continue
        if name in _KLOG_VALUES:
            _ = has_value or (rest and rest.pop(0))
        elif name in switches:
            line.put(name, value if has_value else "true")
        elif name in valued:
            line.put(name, value if has_value else (rest.pop(0) if rest else None))
        elif name == "--kubeconfig":
            _ = has_value or (rest and rest.pop(0))
        else:
            line.remaining.append(argument)
    return line


def _redirects(name: str, value: str) -> bool:
    """Return whether a flag asks for a log in a file, which is not written."""
    return name in ("--log-file", "--log-dir") or (name == "--logtostderr" and value in ("false", "f", "F", "0"))


def command_first(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` with global flags that stand before the command moved behind it: `-v 4 server`."""
    position = 0
    while position < len(arguments):
        name, has_value, _ = _split(arguments[position])
        if name not in _KLOG_SWITCHES and name not in _KLOG_VALUES and name not in ("-v", "--kubeconfig"):
            break
        position += 1 if has_value or name in _KLOG_SWITCHES else 2
    return [*arguments[position : position + 1], *arguments[:position], *arguments[position + 1 :]]


def without_global_flags(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` without `-v` and klog's flags, which every command of the Go command line has."""
    return read(arguments, switches=(), valued=("-v",)).remaining


def verbosity(arguments: Sequence[str]) -> int:
    """Return the verbosity; 0 if it is not given or not a number."""
    text = read(arguments, switches=(), valued=("-v",)).flags.get("-v") or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def _split(argument: str) -> tuple[str, bool, str]:
    name, equals, value = argument.partition("=")
    if name.startswith("--"):
        name = name.replace("_", "-")
    if name == "--v":
        name = "-v"
    if name.startswith("-v") and name[2:].isdigit():
        return "-v", True, name[2:]
    return name, bool(equals), value
