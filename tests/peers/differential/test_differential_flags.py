"""Every flag of the Go commands is known to ours, with the same default, but for what is intended.

And the page of differences names every flag that only our commands have. MAESTROPY_GO_MAESTRO may name a newer
`maestro` of Go than that of go.mod, which has no client commands.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from maestropy.agent import settings as agent
from maestropy.cli.parsing import go_flags
from maestropy.cli.parsing.settings_commands import read
from maestropy.cli.server import migration
from maestropy.flags import Flag, duration
from maestropy.server.settings.load import FLAGS as SERVER
from tests.peers.differential.intended import FLAG_DEFAULTS, FLAGS_LEFT_OUT, FLAGS_OF_NEWER_GO, PAGE

pytestmark = pytest.mark.peers
FLAGS: dict[str, Mapping[str, Flag]] = {
    "server": SERVER,
    "migration": migration.COMMAND.flags,
    "agent": agent.FLAGS,
}
CLIENT_COMMANDS = [
    *(f"consumer {verb}" for verb in ("create", "delete", "get", "list", "update")),
    *(f"resourcebundle {verb}" for verb in ("apply", "delete", "get", "list", "status")),
]
LINE = re.compile(r"^ +(?:-\w, )?(--[\w-]+)(?: (\w+))?  +.*?(?:\(default (.*)\))?$", re.MULTILINE)
SAMPLES = {"int": "5", "int32": "5", "uint": "5", "uint32": "5", "float": "5", "float32": "5", "duration": "5s"}


def told_by_go(maestro: Path, command: str) -> dict[str, tuple[str, str]]:
    """Return the kind and the default of every flag that the Go command explains."""
    told = help_of([str(maestro)], command)
    found = {name: (kind, default.strip('"')) for name, kind, default in LINE.findall(told)}
    found.pop("--help")
    return found


def help_of(program: list[str], command: str) -> str:
    done = subprocess.run([*program, *command.split(), "--help"], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_is_taken(command: str, newest_maestro: Path) -> None:
    found = told_by_go(newest_maestro, command)
    assert len(found) > 20
    missing = []
    for name, (kind, _) in found.items():
        line = read([name if not kind else f"{name}={SAMPLES.get(kind, 'x')}"], FLAGS[command].values())
        if line.remaining:
            missing.append(name)
    assert sorted(missing) == sorted(FLAGS_LEFT_OUT.get(command, set()) & set(found))


@pytest.mark.parametrize("command", CLIENT_COMMANDS)
def test_every_flag_of_a_client_command_is_taken(command: str, newest_maestro: Path) -> None:
    if " consumer " not in help_of([str(newest_maestro)], ""):
        pytest.skip("the Go Maestro of go.mod has no client commands; set MAESTROPY_GO_MAESTRO to a newer one")
    found = told_by_go(newest_maestro, command)
    assert len(found) > 10
    ours = help_of([sys.executable, "-m", "maestropy.cli.main"], command)
    missing = [
        name
        for name, (kind, _) in found.items()
        if not re.search(rf"{name}\b", ours) and go_flags.without_global_flags([name if not kind else f"{name}=1"])
    ]
    assert missing == []


@pytest.mark.parametrize("command", FLAGS)
def test_page_names_every_flag_that_only_our_command_has(command: str, newest_maestro: Path) -> None:
    found = told_by_go(newest_maestro, command)
    ours = {name for name, flag in FLAGS[command].items() if not flag.hidden and name != "-v"} - set(found)
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| flags of `maestro {command}` |")]
    named = set(re.findall(r"`(--[\w-]+)`", line))
    assert named == ours - FLAGS_OF_NEWER_GO


@pytest.mark.parametrize("command", FLAGS)
def test_defaults(command: str, newest_maestro: Path) -> None:
    known = FLAGS[command]
    differing = {}
    for name, (kind, default) in told_by_go(newest_maestro, command).items():
        if name in known and written(known[name].default) != canonical(kind, default):
            differing[name] = (canonical(kind, default), written(known[name].default))
    assert differing == FLAG_DEFAULTS.get(command, {})


def canonical(kind: str, default: str) -> str:
    """Return the default as we would write it; Go leaves out those that are nothing."""
    if kind == "duration" and default:
        return duration.render(duration.parse(default))
    # The Go server resolves it against the folder it was built in.
    default = re.sub("^/.*/secrets/", "secrets/", default)
    nothing = {"": "false", "string": "", "strings": "", "stringArray": ""}.get(kind, "0")
    return default or nothing


def written(value: object) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return f"[{','.join(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return duration.render(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
