"""Every flag of the Go commands is known to ours, with the same default, but for what is intended."""

import re
import subprocess
from collections.abc import Mapping
from datetime import timedelta

import pytest
from intended import FLAG_DEFAULTS, FLAGS_LEFT_OUT
from peer_build import Programs

from maestropy.agent import settings as agent
from maestropy.cli import migration
from maestropy.cli.commands import read
from maestropy.flags import Flag, duration
from maestropy.server.settings.load import FLAGS as SERVER

pytestmark = pytest.mark.peers
FLAGS: dict[str, Mapping[str, Flag]] = {
    "server": SERVER,
    "migration": migration.COMMAND.flags,
    "agent": agent.FLAGS,
}
LINE = re.compile(r"^ +(?:-\w, )?(--[\w-]+)(?: (\w+))?   +.*?(?:\(default (.*)\))?$", re.MULTILINE)
SAMPLES = {"int": "5", "int32": "5", "uint": "5", "uint32": "5", "float": "5", "float32": "5", "duration": "5s"}


def told_by_go(programs: Programs, command: str) -> dict[str, tuple[str, str]]:
    """Return the kind and the default of every flag that the Go command explains."""
    told = subprocess.run([programs.maestro, command, "--help"], capture_output=True, text=True, check=True).stdout
    found = {name: (kind, default.strip('"')) for name, kind, default in LINE.findall(told)}
    found.pop("--help")
    return found


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_is_taken(command: str, programs: Programs) -> None:
    found = told_by_go(programs, command)
    assert len(found) > 20
    missing = []
    for name, (kind, _) in found.items():
        line = read([name if not kind else f"{name}={SAMPLES.get(kind, 'x')}"], FLAGS[command].values())
        if line.words:
            missing.append(name)
    assert sorted(missing) == sorted(FLAGS_LEFT_OUT.get(command, set()))


@pytest.mark.parametrize("command", FLAGS)
def test_defaults(command: str, programs: Programs) -> None:
    known = FLAGS[command]
    differing = {}
    for name, (kind, default) in told_by_go(programs, command).items():
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
