"""Decide what may stand at the end of a command line, for `maestro __complete`.

It walks the command tree along the complete words, and then offers commands, flags, or the values of a flag or an
argument. Names of consumers, works and environments come from functions that the caller gives.
"""

import itertools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from maestropy.cli.client import formats
from maestropy.cli.completion.scripts import FILES
from maestropy.cli.parsing import aliases

NamesSource = Callable[[str, Mapping[str, str]], list[str]]
"""Returns names that begin with a prefix; it gets the flags of the command line."""

_BY_FLAG: Mapping[str, str] = {"--consumer": "consumers", "--env": "environments"}
_BY_COMMAND: Mapping[tuple[str, ...], str] = {
    **{("resourcebundle", name): "works" for name in ("get", "delete", "describe", "edit", "resend", "status", "wait")},
    **{("consumer", name): "consumers" for name in ("adopt", "delete", "get", "update")},
    **{("consumer", name): "consumers" for name in ("pause", "resume", "resync", "retire")},
    **{("config", name): "environments" for name in ("delete", "set-env", "show", "use")},
    ("consumer", "create"): "",
    ("get", "works"): "works",
    ("history",): "works",
    ("get", "consumers"): "consumers",
}
"""What the arguments of a command are; those of other commands are files."""

_FORMATS: Mapping[str, str] = {str(kind): "" for kind in formats.PLAIN} | {
    f"{kind}=": "a template" for kind in formats.TEMPLATES
}
_GOALS = {"condition=Applied": "", "condition=Available": "", "delete": "", "jsonpath=": "'{PATH}'=VALUE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One completion, and what it means."""

    text: str
    description: str = ""

    def __str__(self) -> str:
        return f"{self.text}\t{self.description}" if self.description else self.text


def joined(words: Sequence[str]) -> list[str]:
    """Return words with `--flag`, `=`, `value` joined: bash breaks words at equals signs."""
    result: list[str] = []
    for word in words:
        is_value = len(result) > 0 and result[-1].startswith("-") and result[-1].endswith("=")
        if result and (is_value or (word == "=" and result[-1].startswith("-"))):
            result[-1] += word
        else:
            result.append(word)
    return result


def complete(app: Any, words: Sequence[str], *, names: Mapping[str, NamesSource]) -> list[Candidate]:
    """Return what the last word may become; the words before it are complete."""
    *before, last = words or [""]
    before = _without_help(aliases.expand(before))
    path, command = _walk(app, before)
    if _is_group(command):
        is_unknown = len(path) < len([word for word in before if not word.startswith("-")])
        return [] if is_unknown else _commands(command, last)
    return _Command(command, path=path, before=before[len(path) :], names=names).candidates(last)


def _without_help(words: list[str]) -> list[str]:
    # `help x` was expanded to `x --help`.
    return [word for word in words if word != "--help"]


def _walk(app: Any, words: Sequence[str]) -> tuple[tuple[str, ...], Any]:
    """Return the names of the command that the words lead to, and the command."""
    path: list[str] = []
    for word in itertools.takewhile(lambda word: not word.startswith("-"), words):
        if not _is_group(app) or word not in app:
            break
        app = app[word]
        path.append(word)
    return tuple(path), app


def _is_group(app: Any) -> bool:
    return app.default_command is None


def _commands(app: Any, prefix: str) -> list[Candidate]:
    if prefix.startswith("-"):
        return [Candidate(text="--help", description="Show the help.")] if "--help".startswith(prefix) else []
    named = [name for name in app if not name.startswith("-") and name.startswith(prefix)]
    return [Candidate(text=name, description=_first_sentence(_help_of(app, name))) for name in named]


def _help_of(app: Any, name: str) -> str:
    # Commands that are imported when they are called have their help in the tree: nothing needs to be imported.
    registered = app._commands.get(name)
    text = (getattr(registered, "app_kwargs", None) or {}).get("help")
    return str(text if text is not None else app[name].help or "")


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


class _Command:
    """A command without subcommands, and the words behind its name."""

    def __init__(
        self, app: Any, *, path: tuple[str, ...], before: Sequence[str], names: Mapping[str, NamesSource]
    ) -> None:
        self._path = path
        self._names = names
        arguments = [argument for argument in app.assemble_argument_collection() if argument.show]
        self._flags = {name: argument for argument in arguments for name in argument.names if name.startswith("-")}
        self._positional = [argument for argument in arguments if argument.index is not None]
        self._given: dict[str, str] = {}
        self._pending = ""
        self._read(before)

    def _read(self, words: Sequence[str]) -> None:
        """Note the flags with their values, and the flag that still wants one."""
        for word in words:
            name, equals, value = word.partition("=")
            if self._pending:
                self._given[self._pending] = word
                self._pending = ""
            elif equals and name in self._flags:
                self._given[name] = value
            elif name in self._flags:
                self._given[name] = ""
                self._pending = "" if _is_switch(self._flags[name].hint) else name

    def candidates(self, last: str) -> list[Candidate]:
        """Return what the last word may become."""
        if self._pending:
            return self._values(self._pending, last)
        name, equals, value = last.partition("=")
        if equals and name in self._flags:
            return [
                candidate if candidate.text == FILES else Candidate(text=f"{name}={candidate.text}")
                for candidate in self._values(name, value)
            ]
        if last.startswith("-"):
            return self._matching_flags(last)
        return self._arguments(last)

    def _matching_flags(self, prefix: str) -> list[Candidate]:
        descriptions = {name: argument.parameter.help or "" for name, argument in self._flags.items()}
        descriptions["--help"] = "Show the help."
        repeatable = {name for name, argument in self._flags.items() if _is_many(argument.hint)}
        return [
            Candidate(text=name, description=_first_sentence(text))
            for name, text in descriptions.items()
            if name.startswith(prefix) and name.startswith("--") and (name not in self._given or name in repeatable)
        ]

    def _values(self, name: str, prefix: str) -> list[Candidate]:
        argument = self._flags[name]
        if name in ("-o", "--output") and argument.hint is formats.Format:
            return _matching(_FORMATS, prefix)
        if name == "--for":
            return _matching(_GOALS, prefix)
        if name in _BY_FLAG:
            return self._named(_BY_FLAG[name], prefix)
        return self._of_type(argument, prefix, is_file=False)

    def _arguments(self, prefix: str) -> list[Candidate]:
        if not self._positional:
            return self._matching_flags("--")
        if self._path in _BY_COMMAND:
            return self._named(_BY_COMMAND[self._path], prefix)
        return self._of_type(self._positional[0], prefix, is_file=True)

    def _of_type(self, argument: Any, prefix: str, *, is_file: bool) -> list[Candidate]:
        choices = argument.get_choices()
        if choices:
            return _matching(dict.fromkeys(choices, ""), prefix)
        return [Candidate(text=FILES)] if is_file or _has_type(argument.hint, Path) else []

    def _named(self, kind: str, prefix: str) -> list[Candidate]:
        return [Candidate(text=name) for name in self._names[kind](prefix, self._given)] if kind else []


def _matching(descriptions: Mapping[str, str], prefix: str) -> list[Candidate]:
    return [Candidate(text=text, description=note) for text, note in descriptions.items() if text.startswith(prefix)]


def _types(hint: Any) -> Iterator[Any]:
    inner = get_args(hint) if isinstance(hint, types.UnionType | types.GenericAlias) else ()
    yield from (part for item in inner for part in _types(item)) if inner else (hint,)


def _has_type(hint: Any, wanted: type) -> bool:
    return any(isinstance(part, type) and issubclass(part, wanted) for part in _types(hint))


def _is_switch(hint: Any) -> bool:
    return _has_type(hint, bool)


def _is_many(hint: Any) -> bool:
    return getattr(hint, "__origin__", None) in (tuple, list)
