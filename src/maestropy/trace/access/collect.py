"""Fetch the logs of pods into files: all containers, current and previous, in parallel, with the pods' metadata.

What cannot be fetched is reported beside the files, not written into them; nothing that lies there already is
overwritten by less.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.trace.access import podlogs
from maestropy.trace.access.cluster import Cluster
from maestropy.trace.access.podlogs import Extent, Log, Place
from maestropy.trace.errors import NoAccess

_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came of it."""

    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


async def collect(places: Sequence[Place], directory: Path, *, since_seconds: int) -> list[Collected]:
    """Write the logs of all places below `directory`, a folder for each; all at the same time."""
    return list(await asyncio.gather(*(_collect(place, directory, since_seconds=since_seconds) for place in places)))


async def _collect(place: Place, directory: Path, *, since_seconds: int) -> Collected:
    try:
        async with Cluster(place.choice) as cluster:
            pods = await podlogs.pods_of(cluster.client, place)
            home = directory / place.name
            home.mkdir(parents=True, exist_ok=True)
            told = [_metadata(pod) for pod in pods]
            (home / "pods.json").write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
            gate = asyncio.Semaphore(_AT_ONCE)
            wanted = [
                (log, Extent(is_previous=previous, since_seconds=0 if previous else since_seconds))
                for pod in pods
                for log in podlogs.logs_of(pod, only=place.container)
                for previous in ((False, True) if log.restarts else (False,))
            ]
            results = await asyncio.gather(*(_fetch(gate, cluster.client, *each, home=home) for each in wanted))
    except NoAccess as error:
        return Collected(problems=(f"{place.name}: {error}",))
    except OSError as error:
        return Collected(problems=(f"{directory} cannot be written: {error.strerror}; name another --out",))
    if not wanted:
        return Collected(problems=(f"no pod of {place.name} has a container {place.container}; leave it out for all",))
    return Collected(
        files=tuple(each for each in results if isinstance(each, Path)),
        problems=tuple(each for each in results if isinstance(each, str)),
    )


async def _fetch(gate: asyncio.Semaphore, client: KubeClient, log: Log, extent: Extent, *, home: Path) -> Path | str:
    path = home / f"{log.name}{'.previous' if extent.is_previous else ''}.log"
    part = path.with_suffix(".part")
    async with gate:
        try:
            with part.open("wb") as stream:
                async for chunk in podlogs.read(client, log, extent):
                    stream.write(chunk)
        except errors.KubeError as error:
            with suppress(FileNotFoundError):
                part.unlink()
            return f"{path.name}: {error.message}"
    part.replace(path)
    return path


def _metadata(pod: Json) -> dict[str, Any]:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    return {
        "name": metadata["name"],
        "namespace": metadata.get("namespace"),
        "labels": metadata.get("labels") or {},
        "node": spec.get("nodeName"),
        "phase": status.get("phase"),
        "started": status.get("startTime"),
        "containers": [
            {
                "name": each["name"],
                "image": each.get("image"),
                "restarts": each.get("restartCount"),
                "state": each.get("state"),
                "lastState": each.get("lastState"),
            }
            for each in status.get("containerStatuses") or ()
        ],
    }
