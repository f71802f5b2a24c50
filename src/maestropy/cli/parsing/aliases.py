"""Replace short and plural names of commands by their full names. Pure."""

from collections.abc import Mapping, Sequence

GROUPS: Mapping[str, str] = {"rb": "resourcebundle", "resourcebundles": "resourcebundle", "consumers": "consumer"}
COMMANDS: Mapping[str, str] = {"ls": "list"}
KINDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("work", "rb", "resourcebundle", "resourcebundles", "mw", "manifestwork", "manifestworks"), "works"
    ),
    "consumer": "consumers",
}
_WITH_LIST = ("consumer", "resourcebundle", "config")


def expand(arguments: Sequence[str]) -> list[str]:
    """Return a command line with full names: `rb ls` becomes `resourcebundle list`, `help x` becomes `x --help`."""
    match arguments:
        case ["help", *words] if words[:1] not in (["--help"], ["-h"]):
            return expand([*words, "--help"])
        case ["get", kind, *rest]:
            return ["get", KINDS.get(kind, kind), *rest]
        case [group, *rest]:
            group = GROUPS.get(group, group)
            if rest and group in _WITH_LIST:
                rest = [COMMANDS.get(rest[0], rest[0]), *rest[1:]]
            return [group, *rest]
        case _:
            return []
