"""What the guides for operators take for granted: a PostgreSQL on its port, with its programs, and two clusters.

`python -m tests.stack.guides docs/backup.md` writes into a guide what its commands print now.
"""

import base64
import contextlib
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import yaml

from maestropy.sandbox import ports
from scripts import play_page
from tests.peers import peer_postgres
from tests.peers.peer_processes import running
from tests.waiting import wait_for

PORTS = ("1883", "8000", "8080", "8083", "8090", "8091", "8443", "9000", "9080", "9083", "9090", "9091")
"""Which the pages name, and which may be in use on this machine."""
POSTGRES_PORT = "5432"
FORMER = "b7f189e"
"""The commit whose program is `maestro-old`: version 0.2, four migrations ago."""
CLUSTERS = ("cluster", "new-cluster")
WITHIN = {"backup.md": ("runbooks/MaestroEvictionPending.md", "\n| work | the backup has |")}
"""Pages whose commands are run in the middle of another one, which has what they show, before this text."""
_BORDER = "\n<!-- border of a page within a page -->\n"
_CLUSTER = """
import asyncio, sys
from pathlib import Path
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
async def main():
    async with SandboxCluster(directory=Path(sys.argv[1])):
        print("ready", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@contextlib.contextmanager
def reader(folder: Path, *, environ: Mapping[str, str] = {}) -> Iterator[play_page.Reader]:
    """Open a shell in which the commands of a guide can be run; `folder` must be open to PostgreSQL's user."""
    home = folder / "home"
    home.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(peer_postgres.cluster(folder))
        role = [str(postgres.binaries / "createuser"), "-h", "127.0.0.1", "-p", str(postgres.port), "-U", "postgres"]
        subprocess.run([*role, "--createdb", "maestro"], check=True, capture_output=True)
        for name in CLUSTERS:
            stack.enter_context(cluster(home, name))
        free = dict(zip(PORTS, map(str, ports.free(len(PORTS))), strict=True))
        installation = play_page.this_installation()["PATH"]
        programs = former_version(folder / "former")
        given = {"PATH": f"{programs}:{postgres.binaries}:{installation}", **environ}
        shell = play_page.Reader(home, environ=given, ports={**free, POSTGRES_PORT: str(postgres.port)})
        stack.callback(shell.close)
        yield shell


def has_former_version() -> bool:
    """Tell whether this clone has the history of the project."""
    asked = ["git", "cat-file", "-e", f"{FORMER}^{{commit}}"]
    return subprocess.run(asked, cwd=play_page.ROOT, capture_output=True, check=False).returncode == 0


def former_version(folder: Path) -> Path:
    """Return a folder with the program `maestro-old`; empty in a clone without history."""
    folder.mkdir()
    if has_former_version():
        packed = subprocess.run(["git", "archive", FORMER, "src"], cwd=play_page.ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x"], cwd=folder, input=packed.stdout, check=True)
        program = folder / "maestro-old"
        program.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/src exec {sys.executable} -m maestropy.cli.main "$@"\n')
        program.chmod(0o755)
    return folder


@contextlib.contextmanager
def cluster(home: Path, name: str) -> Iterator[None]:
    """Run a small Kubernetes API; its kubeconfig is NAME.kubeconfig in the home directory."""
    directory, log = home.parent / name, home.parent / f"{name}.log"
    with running([sys.executable, "-c", _CLUSTER, str(directory)], log=log):
        wait_for(lambda: "ready" in log.read_text(), what=f"the API server (see {log})", seconds=60)
        (home / f"{name}.kubeconfig").write_bytes((directory / "kubeconfig").read_bytes())
        yield


def uid(home: Path, path: str) -> str:
    """Return the uid of an object of the first cluster; empty if it is not there."""
    config = yaml.safe_load((home / "cluster.kubeconfig").read_text(encoding="utf-8"))
    authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    answer = httpx.get(
        config["clusters"][0]["cluster"]["server"] + path,
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        verify=ssl.create_default_context(cadata=authority),
    )
    return str(answer.json()["metadata"]["uid"]) if answer.is_success else ""


def whole(page: Path) -> str:
    """Return the text of a page, with the one that is played within it."""
    text = page.read_text(encoding="utf-8")
    if page.name not in WITHIN:
        return text
    inner, before = WITHIN[page.name]
    first, found, rest = text.partition(before)
    assert found, f"{page.name} has no {before}"
    return _BORDER.join([first, (page.parent / inner).read_text(encoding="utf-8"), found + rest])


def write(page: Path, text: str) -> None:
    """Write a page, and the one that is played within it."""
    first, *within = text.split(_BORDER)
    if within:
        inner, rest = within
        (page.parent / WITHIN[page.name][0]).write_text(inner, encoding="utf-8")
        first += rest
    page.write_text(first, encoding="utf-8")


def assert_played(page: Path, shell: play_page.Reader) -> None:
    """Run the commands of a page; the first one that prints something else than what the page shows fails.

    No object that a source applies is made anew, except those that it deleted.
    """
    played = 0
    born: dict[str, str] = {}
    for command, shown, printed in play_page.play(whole(page), shell):
        same = play_page.plain(printed) == play_page.plain(shown)
        assert same, f"{page.name}: $ {command}\n{printed}\nthe page shows:\n{shown}\nrun tests.stack.guides"
        played += 1
        for name in ("app", "app1", "app2", "app4"):
            found = uid(shell.home, f"/api/v1/namespaces/default/configmaps/{name}")
            assert born.get(name, found) == found, f"{page.name}: $ {command}\n{name} was lost or made anew"
            born |= {name: found} if found else {}
    assert played > 4


def main(names: list[str]) -> None:
    """Record every page that is named."""
    for path in map(Path, names):
        with tempfile.TemporaryDirectory(prefix="maestro-guides-", ignore_cleanup_errors=True) as folder:
            Path(folder).chmod(0o755)
            with reader(Path(folder)) as shell:
                write(path, play_page.recorded(whole(path), shell))
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
