"""Make a command from flags: what `--help` shows and what the parser accepts are both read from the settings."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

from pymaestro.cli import goflags
from pymaestro.flags import Flag, explanations

_METAVARS = {"int": "N", "float": "N", "timedelta": "DURATION", "Path": "PATH", "str": "TEXT", "Dsn": "URL"}


def build(
    name: str, *, flags: Iterable[Flag], act: Callable[[Mapping[str, str]], int], text: str, examples: str
) -> App:
    """Return the command `name`, which hands the flags that were given to `act`."""
    shown = list(flags)

    def command(**given: str | None) -> int:
        return act({by_parameter[key].name: value for key, value in given.items() if value is not None})

    by_parameter = {f"{flag.group}_{flag.attribute}": flag for flag in shown}
    helps = {flag.group_kind: explanations(flag.group_kind) for flag in shown}
    groups = {kind: Group(str(kind.__doc__), sort_key=order) for order, kind in enumerate(helps)}
    parameters = [
        inspect.Parameter(
            key,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, _parameter(flag, helps[flag.group_kind], group=groups[flag.group_kind])],
        )
        for key, flag in by_parameter.items()
    ]
    # cyclopts reads both; a function cannot have seventy parameters written out twice.
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    vars(command)["__signature__"] = inspect.Signature(parameters)
    app = App(name=name, help=text, help_epilogue=examples, help_format="plaintext", version_flags=[])
    app.default(command)
    return app


def normalised(arguments: list[str], flags: Iterable[Flag]) -> list[str]:
    """Return `arguments` in the one form that cyclopts reads as Go does."""
    known = list(flags)
    switches = {flag.name for flag in known if flag.is_switch}
    return goflags.normalise(arguments, switches=switches, valued={flag.name for flag in known} - switches)


def _parameter(flag: Flag, helps: Mapping[str, str], *, group: Group) -> Parameter:
    text = " ".join(helps.get(flag.attribute, "").split())
    default = "" if "Default" in text else flag.shown_default()
    choices = f" One of {', '.join(flag.choices)}." if flag.choices else ""
    return Parameter(
        name=(flag.name, "--v") if flag.name == "-v" else flag.name,
        group=group,
        help=f"{text}{choices}" + (f" [{default}]" if default else ""),
        show=not flag.hidden,
        show_default=False,
        negative=(),
        allow_leading_hyphen=True,
        metavar=_metavar(flag),
    )


def _metavar(flag: Flag) -> str:
    if flag.is_switch:
        return ""
    kinds: list[Any] = [flag.kind, *getattr(flag.kind, "__args__", ())]
    return next((_METAVARS[kind.__name__] for kind in kinds if getattr(kind, "__name__", "") in _METAVARS), "TEXT")
