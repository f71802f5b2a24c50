"""The files of a pod: its volumes, kept up to date like a kubelet does, and the script that starts a container on them.

A container sees this machine's files, with its volumes and the programs of its image on top.
"""

import base64
import itertools
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN_FOLDERS = ("run", "secrets", "configs", "e2e", "mosquitto")
"""Not this machine's: a container has these empty, or from its image and volumes."""
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a container image stands for on this machine."""

    files: Mapping[str, Path]
    """Path in the container → program here."""
    command: tuple[str, ...] = ()
    """For containers that name none."""


def write_volume(folder: Path, content: Mapping[str, bytes]) -> None:
    """Make a folder hold exactly these files; readers see all old ones or all new ones."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"..{next(_numbers)}"
    fresh.mkdir()
    for name, value in content.items():
        (fresh / name).write_bytes(value)
    link = folder / "..data"
    old = link.resolve() if link.is_symlink() else None
    aside = folder / "..data_new"
    aside.symlink_to(fresh.name)
    aside.replace(link)
    for name in content:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    for path in folder.iterdir():
        if path.is_symlink() and not path.name.startswith("..") and path.name not in content:
            path.unlink()
    if old is not None:
        for path in old.iterdir():
            path.unlink()
        old.rmdir()


def decoded(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the content of a Secret."""
    return {name: base64.b64decode(value) for name, value in (secret.get("data") or {}).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How to start one container of a pod."""

    command: Sequence[str]
    environment: Mapping[str, str]
    mounts: Sequence[tuple[Path, str]]
    """Folder or file here → path in the container."""
    image: Image
    hosts: Path


def start_script(container: Container, *, folder: Path) -> Path:
    """Write the script that gives a container its files and becomes its program; run it in a mount namespace."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    lines = ["set -e", f"mount -t tmpfs pod {root}"]
    for entry in sorted(os.scandir("/"), key=lambda entry: entry.name):
        target = shlex.quote(f"{root}/{entry.name}")
        if entry.is_symlink():
            lines.append(f"ln -s {shlex.quote(str(Path(entry.path).readlink()))} {target}")
        elif entry.is_dir() and entry.name not in OWN_FOLDERS:
            lines.append(f"mkdir {target}; mount --rbind {shlex.quote(entry.path)} {target}")
    lines += [f"mkdir -p {root}/{name}" for name in OWN_FOLDERS]
    lines.append(f"mount --bind {container.hosts} {root}/etc/hosts")
    lines += _programs(container.image, root=root, folder=folder)
    for source, target in container.mounts:
        lines.append(_bind(source, f"{root}{target}"))
    words = [f"{name}={value}" for name, value in container.environment.items()] + list(container.command)
    lines.append(f"exec chroot {root} /usr/bin/env -i {' '.join(shlex.quote(word) for word in words)}")
    script = folder / f"start{next(_numbers)}.sh"
    script.write_text("\n".join(lines) + "\n")
    return script


def _programs(image: Image, *, root: Path, folder: Path) -> list[str]:
    lines = []
    for number, parent in enumerate(sorted({str(Path(path).parent) for path in image.files})):
        own = folder / f"image{number}"
        own.mkdir(exist_ok=True)
        for path, program in image.files.items():
            link = own / Path(path).name
            if str(Path(path).parent) == parent and not link.is_symlink():
                link.symlink_to(program)
        if Path(parent).is_dir():
            # Ours on top of what this machine has there: an interpreter may be among it.
            lines.append(f"mount -t overlay -o lowerdir={own}:{parent} programs {root}{parent}")
        else:
            lines.append(_bind(own, f"{root}{parent}"))
    return lines


def _bind(source: Path, target: str) -> str:
    parent = shlex.quote(str(Path(target).parent))
    make = f"mkdir -p {shlex.quote(target)}" if source.is_dir() else f"mkdir -p {parent}; touch {shlex.quote(target)}"
    return f"{make}; mount --bind {shlex.quote(str(source))} {shlex.quote(target)}"
