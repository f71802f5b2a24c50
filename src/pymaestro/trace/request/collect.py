"""Fetch the logs of pods with kubectl: all containers, current and previous, in parallel, with the pods' metadata.

Arguments go to kubectl as a list, never through a shell. What cannot be fetched is reported beside the files, not
written into them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from pymaestro.trace.errors import NoAccess

_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the pods of one component are."""

    name: str
    """server or agent; the directory that their logs go to."""
    kubeconfig: str = ""
    context: str = ""
    namespace: str = "maestro"
    label: str = "app=maestro"
    container: str = ""
    """Empty: all containers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came of it."""

    files: tuple[Path, ...]
    problems: tuple[str, ...]


async def collect(place: Place, directory: Path, *, since: str, kubectl: str = "kubectl") -> Collected:
    """Write the logs of the pods of `place` below `directory`."""
    listing = await _kubectl(kubectl, place, ["get", "pods", "-l", place.label, "-o", "json"])
    try:
        pods = orjson.loads(listing)["items"]
    except (orjson.JSONDecodeError, KeyError) as error:
        raise NoAccess(f"kubectl did not list pods of {place.namespace}; check --{place.name}-context") from error
    if not pods:
        raise NoAccess(
            f"no pod in namespace {place.namespace} has the label {place.label}; "
            f"set --{place.name}-namespace and --{place.name}-label"
        )
    home = directory / place.name
    home.mkdir(parents=True, exist_ok=True)
    (home / "pods.json").write_bytes(orjson.dumps([_metadata(pod) for pod in pods], option=orjson.OPT_INDENT_2))
    gate = asyncio.Semaphore(_AT_ONCE)
    jobs = [
        _fetch(gate, kubectl, place, pod=pod, container=container, home=home, since=since, previous=previous)
        for pod in pods
        for container, restarts in _containers(pod, only=place.container)
        for previous in ((False, True) if restarts else (False,))
    ]
    results = await asyncio.gather(*jobs)
    return Collected(
        files=tuple(each for each in results if isinstance(each, Path)),
        problems=tuple(each for each in results if isinstance(each, str)),
    )


def _containers(pod: dict[str, Any], *, only: str) -> list[tuple[str, int]]:
    restarts = {each["name"]: each.get("restartCount", 0) for each in pod["status"].get("containerStatuses", ())}
    names = [each["name"] for each in pod["spec"]["containers"]]
    return [(name, restarts.get(name, 0)) for name in names if not only or name == only]


def _metadata(pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": pod["metadata"]["name"],
        "node": pod["spec"].get("nodeName"),
        "phase": pod["status"].get("phase"),
        "started": pod["status"].get("startTime"),
        "containers": [
            {"name": each["name"], "image": each.get("image"), "restarts": each.get("restartCount")}
            for each in pod["status"].get("containerStatuses", ())
        ],
    }


async def _fetch(  # noqa: PLR0913 - one call's arguments, each named
    gate: asyncio.Semaphore,
    kubectl: str,
    place: Place,
    *,
    pod: dict[str, Any],
    container: str,
    home: Path,
    since: str,
    previous: bool,
) -> Path | str:
    name = pod["metadata"]["name"]
    arguments = ["logs", name, "-c", container, "--timestamps", *(["--previous"] if previous else [])]
    arguments += [f"--since={since}"] if since and not previous else []
    suffix = "" if len(pod["spec"]["containers"]) == 1 else f"_{container}"
    path = home / f"{name}{suffix}{'.previous' if previous else ''}.log"
    async with gate:
        try:
            path.write_bytes(await _kubectl(kubectl, place, arguments))
        except NoAccess as error:
            return f"{path.name}: {error}"
    return path


async def _kubectl(kubectl: str, place: Place, arguments: Sequence[str]) -> bytes:
    command = [*(["--kubeconfig", place.kubeconfig] if place.kubeconfig else [])]
    command += ["--context", place.context] if place.context else []
    command += ["-n", place.namespace, *arguments]
    try:
        process = await asyncio.create_subprocess_exec(
            kubectl, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except FileNotFoundError as error:
        raise NoAccess("kubectl is not installed; install it, or dump the logs another way") from error
    out, trouble = await process.communicate()
    if process.returncode:
        raise NoAccess(" ".join(trouble.decode("utf-8", "replace").split()) or "kubectl failed")
    return out
