"""Read a command line as the Go command does, and write it so that our parser cannot misread it. Pure.

Go's forms: `--flag=value`, `--flag value`; a switch is `--switch` or `--switch=false` and never takes the next word;
verbosity is `-v 4`, `-v=4`, `-v4` or `--v=4`; the last of repeated flags counts; klog's own flags may be there. In
names `_` equals `-`: the Go agent says so, and the Go server has no flag that it would confuse.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

# klog's other flags steer files and buffers that we do not have. The switches among them take no word.
_KLOG_SWITCHES = frozenset(
    {"--logtostderr", "--alsologtostderr", "--add-dir-header", "--one-output", "--skip-headers", "--skip-log-headers"}
)
_KLOG_VALUES = frozenset(
    {
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
class Line:
    """What has been read of a command line: every known flag once, None where its value is missing, and the rest."""

    flags: dict[str, str | None] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def put(self, name: str, value: str | None) -> None:
        # Taken out first, so that the last one given also stands last.
        self.flags.pop(name, None)
        self.flags[name] = value


def read(arguments: Sequence[str], *, switches: Collection[str], valued: Collection[str]) -> Line:
    """Return what `arguments` say; words that are no known flag stay as they are."""
    line = Line()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            line.words += [word, *rest]
            break
        name, has_value, value = _split(word)
        if name in _KLOG_SWITCHES:
            continue
        if name in _KLOG_VALUES:
            _ = has_value or (rest and rest.pop(0))
        elif name in switches:
            line.put(name, value if has_value else "true")
        elif name in valued:
            line.put(name, value if has_value else (rest.pop(0) if rest else None))
        else:
            line.words.append(word)
    return line


def verbosity(arguments: Sequence[str]) -> int:
    """Return the verbosity asked for; 0 if none or not a number."""
    text = read(arguments, switches=(), valued=("-v",)).flags.get("-v") or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def _split(word: str) -> tuple[str, bool, str]:
    name, equals, value = word.partition("=")
    if name.startswith("--"):
        name = name.replace("_", "-")
    if name == "--v":
        name = "-v"
    if name.startswith("-v") and name[2:].isdigit():
        return "-v", True, name[2:]
    return name, bool(equals), value
