"""One pod as processes of this machine: its init containers in turn, then its container, restarted when it ends."""

import contextlib
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.peers.peer_processes import mortal
from tests.upstream import pod_files, pod_network
from tests.upstream.pod_files import Container, Image

PROBE_SECONDS = 1.0
"""More often than the charts ask for, and from the beginning: it only makes a run shorter."""
RESTART_SECONDS = 3.0


@dataclass(kw_only=True)
class Pod:
    """A pod that this machine runs; `start` returns at once, `state` tells how far it is."""

    manifest: Mapping[str, Any]
    folder: Path
    images: Mapping[str, Image]
    variables: Mapping[str, str]
    """What every container has in its environment."""
    volumes: Callable[["Pod"], Mapping[str, Path]]
    services: Callable[[], Sequence[Mapping[str, str]]]
    say: Callable[[str], None]
    address: str = ""
    is_ready: bool = False
    phase: str = "Pending"
    restarts: int = 0
    exit_code: int | None = None
    process: subprocess.Popen[bytes] | None = None
    begun: str = field(default_factory=lambda: stamp())
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def container(self) -> Mapping[str, Any]:
        container: Mapping[str, Any]
        (container,) = self.manifest["spec"]["containers"]
        return container

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    @property
    def is_idle(self) -> bool:
        """Whether no program of this machine stands for its image: it counts as running, and does nothing."""
        return image_of(self.container, self.images) is None

    @property
    def has_ended(self) -> bool:
        return self._thread is None or not self._thread.is_alive()

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        if self.is_idle:
            self.address, self.phase, self.is_ready = pod_network.GATEWAY, "Running", True
            return
        self._thread = threading.Thread(target=self._live, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; it has `terminationGracePeriodSeconds` for that."""
        self._stop.set()

    def _live(self) -> None:
        network = pod_network.open_pod(self.folder)
        self.address = network.address
        try:
            self._run_all(network)
        except Exception as error:
            self.phase = "Failed"
            self.say(f"pod {self.name}: {error}")
        finally:
            self.is_ready = False
            network.close()

    def _run_all(self, network: pod_network.PodNetwork) -> None:
        mounted = self.volumes(self)
        hosts = self.folder / "hosts"
        hosts.write_text(pod_network.hosts(self.services(), namespace=self.namespace))
        for container in self.manifest["spec"].get("initContainers", ()):
            code = None
            while code != 0 and not self._stop.is_set():
                code = self._run_one(container, network, mounted=mounted, hosts=hosts)
                self._stop.wait(0 if code == 0 else RESTART_SECONDS)
        is_job = self.manifest["spec"].get("restartPolicy") == "Never"
        while not self._stop.is_set():
            self.exit_code = self._run_one(self.container, network, mounted=mounted, hosts=hosts, is_main=True)
            if is_job:
                self.phase = "Failed" if self.exit_code else "Succeeded"
                return
            if not self._stop.is_set():
                self.say(f"pod {self.name} ended with {self.exit_code} and is started again (see {self.log})")
                self.restarts += 1
                self._stop.wait(RESTART_SECONDS)

    def _run_one(
        self,
        container: Mapping[str, Any],
        network: pod_network.PodNetwork,
        *,
        mounted: Mapping[str, Path],
        hosts: Path,
        is_main: bool = False,
    ) -> int:
        image = image_of(container, self.images)
        assert image is not None, f"nothing stands for the image {container['image']}"
        environment = {**self.variables, **own_variables(container, self.manifest)}
        words = [*(container.get("command") or image.command), *container.get("args", ())]
        prepared = Container(
            command=[expanded(word, environment) for word in words],
            environment=environment,
            # This machine's /tmp stays: the program of an image may be in it.
            mounts=[mount(each, mounted) for each in container.get("volumeMounts", ()) if each["mountPath"] != "/tmp"],
            image=image,
            hosts=hosts,
        )
        script = pod_files.start_script(prepared, folder=self.folder)
        command = [*mortal(), *network.enter(), "unshare", "--mount", "sh", str(script)]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd="/"
            )
        try:
            return self._watch(self.process, container, is_main=is_main)
        finally:
            self.is_ready = False

    def _watch(self, process: subprocess.Popen[bytes], container: Mapping[str, Any], *, is_main: bool) -> int:
        deadline = None
        while (code := process.poll()) is None:
            if is_main:
                self.phase = "Running"
                self.is_ready = not self._stop.is_set() and is_answering(container, self.address)
            if self._stop.is_set() and deadline is None:
                deadline = time.monotonic() + self.manifest["spec"].get("terminationGracePeriodSeconds", 30)
                process.terminate()
            if deadline is not None and time.monotonic() > deadline:
                process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PROBE_SECONDS if deadline is None else 0.1)
        return code

    def state(self) -> dict[str, Any]:
        """Return the status that the API server is told."""
        now_ready = "True" if self.is_ready else "False"
        if self.phase == "Running":
            running: dict[str, Any] = {"running": {"startedAt": self.begun}}
        elif self.phase == "Pending":
            running = {"waiting": {"reason": "PodInitializing"}}
        else:
            running = {"terminated": {"exitCode": self.exit_code or 0, "finishedAt": stamp()}}
        container = {
            "name": self.container["name"],
            "image": self.container["image"],
            "imageID": "",
            "ready": self.is_ready,
            "started": self.phase == "Running",
            "restartCount": self.restarts,
            "state": running,
        }
        conditions = [
            {"type": kind, "status": now_ready if kind in ("Ready", "ContainersReady") else "True"}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        status: dict[str, Any] = {"phase": self.phase, "conditions": conditions, "containerStatuses": [container]}
        if self.address:
            status |= {"podIP": self.address, "podIPs": [{"ip": self.address}], "startTime": self.begun}
        return status


def stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def image_of(container: Mapping[str, Any], images: Mapping[str, Image]) -> Image | None:
    """Return what stands for a container's image; the key that is a part of its name decides."""
    return next((image for part, image in images.items() if part in container["image"]), None)


def own_variables(container: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment that a container asks for: plain values, and its pod's name."""
    found = {}
    for entry in container.get("env", ()):
        path = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        section, _, key = path.partition(".")
        found[entry["name"]] = str(manifest[section][key]) if path else entry.get("value", "")
    return found


def expanded(word: str, environment: Mapping[str, str]) -> str:
    """Put variables into a word of a command: `$(POD_NAME)`."""
    for name, value in environment.items():
        word = word.replace(f"$({name})", value)
    return word


def mount(entry: Mapping[str, Any], mounted: Mapping[str, Path]) -> tuple[Path, str]:
    source = mounted[entry["name"]]
    # /var/run leads to /run of this machine while the container's files are being put together.
    target = entry["mountPath"].replace("/var/run/", "/run/", 1)
    return (source / entry["subPath"] if "subPath" in entry else source), target


def is_answering(container: Mapping[str, Any], address: str) -> bool:
    """Ask a container's readiness probe over HTTP; one that has none, or another kind, is ready when it runs."""
    probe = container.get("readinessProbe", {}).get("httpGet")
    if not probe:
        return True
    url = f"{probe.get('scheme', 'HTTP').lower()}://{address}:{probe['port']}{probe['path']}"
    # A kubelet does not check certificates either.
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as answer:
            return bool(200 <= answer.status < 400)
    except (urllib.error.URLError, OSError):
        return False
