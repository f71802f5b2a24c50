"""Makes the practice incidents: plays the lab, collects an archive of each, and writes them into the package.

    python -m tests.peers.incidents.package                                # all, 20 to 25 minutes
    python -m tests.peers.incidents.package --stack python --scene mqtt2   # these only; the others stay

Those of our stack are played on our own ground (`own_ground.py`), which needs no Go; those of the Go Maestro are
recorded logs. What an incident says and what is true of it is in `practice_incidents.py`. Texts can be changed without
playing again: `--texts` writes them beside the archives that are there. Archives are collected by `maestro diagnose
collect`, limited to the time from shortly before the work in question; names of this computer and of its folders are
replaced.
"""

import argparse
import asyncio
import functools
import os
import re
import socket
import sys
import tarfile
import tempfile
import time
import traceback
import uuid
from contextlib import ExitStack
from pathlib import Path

import msgspec

from maestropy import trace
from maestropy.aio.clock import Clock
from maestropy.diagnose import archive
from maestropy.diagnose.collection import collect
from maestropy.diagnose.collection.collect import CollectOptions
from maestropy.diagnose.collection.scope import Scope
from maestropy.practice import catalogue, model
from maestropy.trace.access.confirmation import NoConfirmer
from maestropy.trace.access.options import HcpAccess, WorkAccess
from tests.peers import kube_build, peer_build, peer_postgres
from tests.peers.incidents import own_ground, practice_incidents, practice_scenes, scenes
from tests.peers.incidents.lab import STAGE_SECONDS, Ground, Lab, lab
from tests.peers.incidents.practice_incidents import ALL, INCIDENTS, LOGS, NAMES, SCENES, Packaged
from tests.peers.kube_cluster import kube_cluster

TARGET = Path(__file__).parents[3] / "src" / "maestropy" / "practice" / "incidents"
LOGS_OF_GO = Path(__file__).parents[2] / "data" / "trace_incidents.tar.xz"
MOST_BYTES = 2_000_000
QUIET_SECONDS = 32.0
"""A little more than the time after which `maestro diagnose analyze` calls a stage missing."""
BEFORE_SECONDS = 60.0
PLAYS = {**scenes.PLAYS, practice_scenes.SCENE.name: practice_scenes.PLAY}


class Collector:
    """Collects the archives of one stack."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.wanted = [each for each in INCIDENTS if each.stack == kind]
        self.facts: dict[str, dict[str, str]] = {}

    def quiet_seconds(self, scene: str, moment: str) -> float:
        is_wanted = any((each.scene, each.moment) == (scene, moment) for each in self.wanted)
        return QUIET_SECONDS if is_wanted else STAGE_SECONDS

    def on_moment(self, running: Lab, moment: str) -> None:
        """Collect with all access that there is."""
        for each in self.wanted:
            if (each.scene, each.moment) == (running.scene.name, moment):
                self.collect(each, running, access=whole_access(running, moment), collected=ALL)

    def after_play(self, running: Lab) -> None:
        """Collect those whose logs are all that there is."""
        for each in self.wanted:
            if (
                each.scene == running.scene.name
                and number_of(each) not in self.facts
                and each.moment in running.moments
            ):
                access = WorkAccess(logs=str(running.moments[each.moment]))
                self.collect(each, running, access=access, collected=LOGS)

    def collect(self, each: Packaged, running: Lab, *, access: WorkAccess, collected: str) -> None:
        output = self.folder / f"{number_of(each)}{archive.ENDING}"
        begun = running.asked_at.get(each.work, 0.0)
        is_later = begun and collected == ALL and each.moment != "calm"
        servers = [server for server in running.servers.values() if is_alive(server.pid)] if collected == ALL else []
        options = CollectOptions(
            access=access,
            hcp_access=HcpAccess(),
            output=output,
            scope=Scope(since=begun - BEFORE_SECONDS if is_later else 0.0),
            health_urls=tuple(server.health_url.rpartition("/")[0] for server in servers),
            metrics_urls=tuple(server.metrics_url.rpartition("/")[0] for server in servers),
        )
        asyncio.run(collect.collect(options, confirmer=NoConfirmer(), progress=lambda _: None, clock=Clock()))
        without_local_names(output, {str(running.ground.folder): "/lab", socket.gethostname(): "host-1"})
        self.facts[number_of(each)] = {"id": resource_id(each, running), "collected": collected}
        print(f"  {output.name}  {output.stat().st_size} bytes  {each.title}", flush=True)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and bool(Path(f"/proc/{pid}/cmdline").read_bytes())


def number_of(each: Packaged) -> str:
    return f"{INCIDENTS.index(each) + 1:02}"


def whole_access(running: Lab, moment: str) -> WorkAccess:
    return WorkAccess(
        db_dsn=running.database.dsn,
        rest_url=running.servers[0].rest_url,
        mgmt_kubeconfigs=(f"{running.consumer}={running.ground.cluster.kubeconfig}",),
        logs=str(running.moments[moment]),
    )


def resource_id(each: Packaged, running: Lab) -> str:
    if each.work in running.asked:
        return running.asked[each.work]
    # Of a work that nobody sent: the id that it would have had.
    text = f"{running.source}-manifestworks.work.open-cluster-management.io-{running.consumer}-{each.name}"
    return str(uuid.uuid5(uuid.NAMESPACE_OID, text))


def without_local_names(path: Path, replaced: dict[str, str]) -> None:
    """Write an archive again without the names of this computer."""
    pattern = re.compile("|".join(re.escape(name) for name in sorted(replaced, key=len, reverse=True)).encode())
    change = functools.partial(pattern.sub, lambda found: replaced[found[0].decode()].encode())
    with tempfile.TemporaryDirectory() as place, archive.opened(path, folder=Path(place)) as opened:
        assert opened.manifest is not None, opened.problems
        for name in opened.files:
            file = opened.folder / name
            stat = file.stat()
            file.write_bytes(change(file.read_bytes()))
            os.utime(file, (stat.st_mtime, stat.st_mtime))
        manifest = msgspec.json.decode(change(msgspec.json.encode(opened.manifest)), type=type(opened.manifest))
        names = sorted(opened.files, key=lambda name: (name.startswith("logs/"), name))
        manifest.files = {name: (opened.folder / name).stat().st_size for name in names}
        archive.write(opened.folder, path, manifest=manifest, files=names)


def make(kind: str, wanted: list[str], folder: Path, *, is_own: bool) -> dict[str, dict[str, str]]:
    """Play the scenes of one stack; return what is known of each archive."""
    folder.mkdir(parents=True)
    collector = Collector(folder, kind)
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-postgres-", ignore_cleanup_errors=True))
        postgres = stack.enter_context(peer_postgres.cluster(Path(place)))
        kube = folder / "kube"
        kube.mkdir()
        if is_own:
            programs, cluster = own_ground.NO_PROGRAMS, stack.enter_context(own_ground.sandbox_kube(kube))
        else:
            programs = peer_build.programs(print)
            cluster = stack.enter_context(kube_cluster(kube_build.control_plane(print), folder=kube))
        ground = Ground(
            programs=programs,
            cluster=cluster,
            client=own_ground.SdkClient if is_own else None,
            postgres=postgres,
            folder=folder,
            kind=kind,
            names=NAMES,
            quiet_seconds=collector.quiet_seconds,
            on_moment=collector.on_moment,
        )
        for name in wanted:
            begun = time.monotonic()
            with lab(ground, SCENES[name]) as running:
                try:
                    play(running, collector)
                except Exception:  # what was collected before is kept
                    print(f"scene {name} broke off:\n{traceback.format_exc(limit=-4)}", flush=True)
            print(f"{time.monotonic() - begun:6.1f} s  {kind} {name}", flush=True)
    return collector.facts


def play(running: Lab, collector: Collector) -> None:
    """Play a scene as far as incidents need it."""
    name = running.scene.name
    needed = {each.moment for each in collector.wanted if each.scene == name}
    plays = practice_scenes.OWN_PLAYS.get(name, PLAYS[name]) if running.ground.client else PLAYS[name]
    for part in plays:
        part(running)
        if needed <= set(running.moments):
            break
    collector.after_play(running)


def recorded(folder: Path) -> dict[str, dict[str, str]]:
    """Package the recorded logs of the Go Maestro."""
    folder.mkdir(parents=True)
    with tarfile.open(LOGS_OF_GO) as tar:
        tar.extractall(folder, filter="data")
    for path in folder.glob("*/snap-*/*.log"):
        stat = path.stat()
        path.write_text(neutral(path.read_text()))
        os.utime(path, (stat.st_mtime, stat.st_mtime))
    facts = {}
    for each in INCIDENTS:
        if each.scene in practice_incidents.RECORDED:
            logs = folder / each.scene / f"snap-{each.moment}"
            output = folder / f"{number_of(each)}{archive.ENDING}"
            archived(CollectOptions(access=WorkAccess(logs=str(logs)), hcp_access=HcpAccess(), output=output))
            found = trace.requests(logs)
            ids = [one.key.resource for one in found if one.key.work_name == each.name]
            facts[number_of(each)] = {"id": ids[0], "collected": LOGS}
    return facts


def neutral(text: str) -> str:
    """Replace names of works and consumers, where they stand as names: quoted, or as a part of a path."""
    for name, other in NAMES.items():
        text = re.sub(rf"""(?<=["'/=]){name}(?=\\*["'/,\]]|[ ,\n])(?!\\*":)""", other, text)
    return text


def archived(options: CollectOptions) -> None:
    asyncio.run(collect.collect(options, confirmer=NoConfirmer(), progress=lambda _: None, clock=Clock()))
    without_local_names(options.output, {"/var/run": "/run", socket.gethostname(): "host-1"})


def write(made: Path, facts: dict[str, dict[str, str]]) -> None:
    """Put new archives into the package, and describe all that are there."""
    TARGET.mkdir(exist_ok=True)
    for number in facts:
        (TARGET / f"{number}{archive.ENDING}").write_bytes((made / f"{number}{archive.ENDING}").read_bytes())
    known: dict[str, dict[str, str]] = {}
    if (TARGET / catalogue.NAME).exists():
        old = msgspec.json.decode((TARGET / catalogue.NAME).read_bytes(), type=model.Catalogue)
        known = {each.id: {"id": each.truth.resource_id, "collected": each.collected} for each in old.incidents}
    known |= facts
    found = [
        each.incident(number, resource_id=known[f"{number:02}"]["id"], collected=known[f"{number:02}"]["collected"])
        for number, each in enumerate(INCIDENTS, 1)
        if f"{number:02}" in known
    ]
    document = msgspec.json.encode(model.Catalogue(incidents=tuple(found)))
    (TARGET / catalogue.NAME).write_bytes(msgspec.json.format(document, indent=1) + b"\n")
    size = sum(path.stat().st_size for path in TARGET.iterdir())
    print(f"{len(found)} of {len(INCIDENTS)} incidents, {size} bytes", flush=True)
    assert size < MOST_BYTES, f"the incidents have {size} bytes"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stack", choices=["go", "python"], action="append", help="whose server and agent")
    parser.add_argument("--scene", action="append", choices=list(SCENES), help="only this one; repeat it")
    parser.add_argument("--texts", action="store_true", help="write statements and truths only; play nothing")
    options = parser.parse_args(arguments)
    if options.texts:
        write(TARGET, {})
        return 0
    for kind in options.stack or ["go", "python"]:
        needed = {each.scene for each in practice_incidents.INCIDENTS if each.stack == kind}
        wanted = [name for name in SCENES if name in needed and name in (options.scene or SCENES)]
        with tempfile.TemporaryDirectory(prefix="practice-", ignore_cleanup_errors=True) as place:
            folder = Path(place) / kind
            facts = recorded(folder) if kind == "go" else make(kind, wanted, folder, is_own=kind == "python")
            write(folder, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
