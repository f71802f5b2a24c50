"""Runs programs of a built image as Kubernetes would: runc, the user of the image, a read-only root, no capabilities.

The network is this machine's, so that loopback leads to the database and the API server of the tests.
"""

import contextlib
import itertools
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.peer_processes import running

KINDS = ("pid", "mount", "ipc", "uts")
_numbers = itertools.count(1)


@dataclass(frozen=True, kw_only=True)
class Image:
    """The files of an image and how it says that it is started."""

    root: Path
    folder: Path
    """For bundles and the state of runc."""
    config: Mapping[str, Any]

    def bundle(self, *words: str, files: Mapping[str, Path] | None = None, entrypoint: Sequence[str] = ()) -> Path:
        """Write a bundle that runs these words after the entrypoint; `files` are mounted, read-only."""
        folder = self.folder / f"bundle{next(_numbers)}"
        folder.mkdir()
        user, _, group = self.config["User"].partition(":")
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
            *(
                {"destination": target, "type": "bind", "source": str(source), "options": ["rbind", "ro"]}
                for target, source in (files or {}).items()
            ),
        ]
        settings = {
            "ociVersion": "1.0.2",
            "root": {"path": str(self.root), "readonly": True},
            "process": {
                "user": {"uid": int(user), "gid": int(group)},
                "args": [*(entrypoint or self.config["Entrypoint"]), *words],
                "env": list(self.config["Env"]),
                "cwd": self.config["WorkingDir"],
                "noNewPrivileges": True,
                "capabilities": {},
            },
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in KINDS]},
        }
        (folder / "config.json").write_text(json.dumps(settings))
        return folder

    def command(self, bundle: Path) -> list[str]:
        state = self.folder / "runc"
        return [
            "runc",
            "--root",
            str(state),
            "run",
            "--bundle",
            str(bundle),
            f"maestro-{self.folder.name}-{bundle.name}",
        ]

    def run(self, *words: str, **given: Any) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        command = self.command(self.bundle(*words, **given))
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    @contextlib.contextmanager
    def running(self, *words: str, log: Path, files: Mapping[str, Path]) -> Iterator["subprocess.Popen[bytes]"]:
        """Run until the block ends."""
        command = self.command(self.bundle(*words, files=files))
        with running(command, log=log) as process:
            yield process


@contextlib.contextmanager
def unpacked(archive: Path, *, folder: Path) -> Iterator[Image]:
    """Make the image of an OCI archive ready to be run."""
    where = ["--root", str(folder / "storage"), "--runroot", str(folder / "run")]

    def buildah(*words: str) -> str:
        done = subprocess.run(["buildah", *where, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"buildah {' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    container = buildah("from", f"oci-archive:{archive}")
    try:
        root = Path(buildah("mount", container))
        config = json.loads(buildah("inspect", container))["OCIv1"]["config"]
        yield Image(root=root, folder=folder, config=config)
    finally:
        buildah("umount", container)
        buildah("rm", container)
        buildah("rmi", "--all", "--force")
