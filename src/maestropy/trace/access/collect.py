"""Collect the logs of pods into files: all containers, current and previous, in parallel, with the pods' metadata.

Logs that cannot be fetched are reported as problems. An existing file is never replaced by an incomplete one. Names
become file names, so those that no API server gives are rejected; a log without end is given up.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.trace.access import pod_logs
from maestropy.trace.access.cluster import TracedCluster
from maestropy.trace.access.pod_logs import ComponentPods, Extent, Log
from maestropy.trace.errors import NoAccess

_AT_ONCE = 8
_MOST_BYTES = 4 << 30
"""Kubelets rotate logs long before; only a broken or hostile API server sends more."""
_LONGEST_NAME = 200
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_NOT_FETCHED = (errors.Forbidden, errors.Unauthorized, errors.Unreachable, errors.ServerError, errors.TooManyRequests)
"""Errors that say nothing about the log: it may well exist."""


class _TooLarge(Exception):
    """A log has no end that is worth waiting for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The collected files and the problems."""

    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    is_complete: bool = True
    """Whether every log that exists was fetched; false after a rejection or a failure of the API server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """A log that was not fetched."""

    says: str
    exists: bool
    """Whether the log exists: a container that has not started, or never restarted, has none."""


async def collect(components: Sequence[ComponentPods], directory: Path, *, since_seconds: int) -> list[Collected]:
    """Write the logs of all components below `directory`, a folder for each, in parallel."""
    return list(
        await asyncio.gather(*(_collect(component, directory, since_seconds=since_seconds) for component in components))
    )


async def _collect(component: ComponentPods, directory: Path, *, since_seconds: int) -> Collected:
    try:
        async with TracedCluster(component.target) as cluster:
            listed = await pod_logs.pods_of(cluster.client, component)
            pods = list({pod["metadata"]["name"]: pod for pod in listed if _is_well_formed(pod)}.values())
            home = directory / component.name
            home.mkdir(parents=True, exist_ok=True)
            metadata = [_metadata(pod) for pod in pods]
            (home / "pods.json").write_bytes(orjson.dumps(metadata, option=orjson.OPT_INDENT_2))
            gate = asyncio.Semaphore(_AT_ONCE)
            requests = [
                (log, Extent(is_previous=previous, since_seconds=0 if previous else since_seconds))
                for pod in pods
                for log in pod_logs.logs_of(pod, only=component.container)
                for previous in ((False, True) if log.restarts else (False,))
            ]
            results = await asyncio.gather(*(_fetch(gate, cluster.client, *request, home=home) for request in requests))
            strange = len(listed) - len(pods)
    except NoAccess as error:
        return Collected(problems=(f"{component.name}: {error}",), is_complete=False)
    except OSError as error:
        says = f"{directory} cannot be written: {error.strerror}; name another --out"
        return Collected(problems=(says,), is_complete=False)
    if not requests and not strange:
        says = f"no pod of {component.name} has a container {component.container}; leave it out for all"
        return Collected(problems=(says,), is_complete=False)
    problems = [result for result in results if isinstance(result, _Problem)]
    if strange:
        says = (
            f"{component.name}: {strange} of {len(listed)} pods have names that Kubernetes does not allow, or no names"
        )
        problems.append(_Problem(says=says, exists=True))
    return Collected(
        files=tuple(result for result in results if isinstance(result, Path)),
        problems=tuple(problem.says for problem in problems),
        is_complete=not any(problem.exists for problem in problems),
    )


async def _fetch(
    gate: asyncio.Semaphore, client: KubeClient, log: Log, extent: Extent, *, home: Path
) -> Path | _Problem:
    path = home / f"{log.name}{'.previous' if extent.is_previous else ''}.log"
    part = path.with_suffix(".part")
    async with gate:
        try:
            await _write(pod_logs.read(client, log, extent), part)
            part.replace(path)
        except errors.KubeError as error:
            return _Problem(says=f"{path.name}: {error.message}", exists=isinstance(error, _NOT_FETCHED))
        except _TooLarge:
            says = f"{path.name}: more than {_MOST_BYTES >> 30} GiB, given up; collect less with --since"
            return _Problem(says=says, exists=True)
        finally:
            part.unlink(missing_ok=True)
    return path


async def _write(chunks: AsyncIterator[bytes], path: Path) -> None:
    size = 0
    with path.open("wb") as stream:
        async for chunk in chunks:
            size += len(chunk)
            if size > _MOST_BYTES:
                raise _TooLarge
            stream.write(chunk)


def _is_well_formed(pod: Json) -> bool:
    """Say whether the names of a pod and of its containers are such as Kubernetes allows."""
    metadata, spec = pod.get("metadata"), pod.get("spec") or {}
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return False
    names = [metadata.get("name"), *(_name(container) for container in spec.get("containers") or ())]
    return all(isinstance(name, str) and len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) for name in names)


def _name(container: object) -> object:
    return container.get("name") if isinstance(container, dict) else None


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
                "name": container.get("name"),
                "image": container.get("image"),
                "restarts": container.get("restartCount"),
                "state": container.get("state"),
                "lastState": container.get("lastState"),
            }
            for container in status.get("containerStatuses") or ()
        ],
    }
