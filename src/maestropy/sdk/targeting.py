"""Choose the consumer of a work: a fixed one, from the environment, from a file, or from a list of clusters.

    target = targeting.from_hyperfleet("https://api", region="us-east", choose=targeting.least_loaded)
    works = client.works(await target.consumer())

The choice functions are pure.
"""

import itertools
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maestropy.sdk._connection.management_clusters import ManagementClusterList
from maestropy.sdk._connection.management_clusters import TargetCluster as TargetCluster
from maestropy.sdk._connection.management_clusters import parse_management_clusters as parse_management_clusters
from maestropy.sdk._manifests import sources
from maestropy.sdk.errors import ConfigError, NotFound
from maestropy.untrusted import files
from maestropy.untrusted.errors import InputRejected
from maestropy.wire import kubernetes_names

VARIABLE = "MANAGEMENT_CLUSTER_CONSUMER"
"""The variable that commonly holds the consumer of an adapter."""


Choice = Callable[[Sequence[TargetCluster]], TargetCluster]
"""Chooses one of at least one management cluster."""


class Target(Protocol):
    """Chooses the consumer of a work."""

    async def consumer(self) -> str:
        """Return the consumer of the next work."""


@dataclass(frozen=True, slots=True)
class _Fixed:
    find: Callable[[], str]

    async def consumer(self) -> str:
        return self.find()


@dataclass(frozen=True, slots=True)
class _Chosen:
    query: Callable[[], Awaitable[Iterable[TargetCluster | str]]]
    choose: Choice
    empty_message: str = "there is no cluster"

    async def consumer(self) -> str:
        candidates = [
            item if isinstance(item, TargetCluster) else TargetCluster(consumer=item) for item in await self.query()
        ]
        if not candidates:
            raise NotFound(
                self.empty_message, doing="choose a cluster", advice="check that a healthy cluster is registered"
            )
        return _checked(self.choose(candidates).consumer, "the chosen cluster")


def static(consumer: str) -> Target:
    """Return a target with a fixed consumer."""
    name = _checked(consumer, "consumer")
    return _Fixed(lambda: name)


def from_environment(variable: str = VARIABLE, *, environ: Mapping[str, str] | None = None) -> Target:
    """Return a target that reads an environment variable."""
    source = os.environ if environ is None else environ

    def find() -> str:
        if not source.get(variable):
            raise ConfigError(f"{variable} is not set", advice="set it to the name of a consumer")
        return _checked(source[variable], variable)

    return _Fixed(find)


def from_file(path: str | Path, *, key: str = "") -> Target:
    """Return a target that reads a file, or the directory of a mounted ConfigMap, for every work.

    Of a file, without `key` the whole content is the name; with it the file is YAML and has the key, or has it below
    `data`. A mounted ConfigMap is a directory with one file per key: `key` names it, unless there is only one.
    """

    def find() -> str:
        if Path(path).is_dir():
            return _from_mounted(Path(path), key)
        try:
            text = files.read_text(Path(path), most=files.CONFIG_BYTES)
        except InputRejected as error:
            raise ConfigError(str(error), advice="mount the ConfigMap") from error
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}", advice="mount the ConfigMap") from error
        if not key:
            return _checked(text, str(path))
        document = sources.read(text)[0]
        consumer = document.get(key) or (document.get("data") or {}).get(key)
        if not isinstance(consumer, str):
            raise ConfigError(f"{path} has no {key}", advice="add it with the name of a consumer")
        return _checked(consumer, f"{key} of {path}")

    return _Fixed(find)


def _from_mounted(folder: Path, key: str) -> str:
    # Kubernetes also puts `..data` and the folder of the current version there.
    keys = sorted(file.name for file in folder.iterdir() if not file.name.startswith("..") and file.is_file())
    if key not in keys and (key or len(keys) != 1):
        problem = f"{folder} has no {key}" if key else f"{folder} has {len(keys)} keys"
        raise ConfigError(problem, advice=f"give key=… as one of: {', '.join(keys) or 'none, the ConfigMap is empty'}")
    file = folder / (key or keys[0])
    try:
        text = files.read_text(file, most=files.CONFIG_BYTES)
    except (InputRejected, OSError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", advice="mount the ConfigMap") from error
    return _checked(text, str(file))


def from_query(
    query: Callable[[], Awaitable[Iterable[TargetCluster | str]]], *, choose: Choice | None = None
) -> Target:
    """Return a target that chooses from the clusters of `query`; round robin by default."""
    return _Chosen(query, choose or round_robin())


def from_hyperfleet(
    api_url: str,
    *,
    region: str = "",
    status: str = "healthy",
    token_file: Path | None = None,
    choose: Choice | None = None,
    timeout: float = 10.0,
) -> Target:
    """Return a target that chooses from the management clusters that the HyperFleet API lists.

    The list is read for every work, and retried for `timeout` seconds when it fails.
    """
    query = {name: value for name, value in (("region", region), ("status", status)) if value}
    listing = ManagementClusterList(api_url=api_url, query=query, token_file=token_file, timeout=timeout)

    filters = " and ".join(f"{name} {value}" for name, value in query.items())
    return _Chosen(
        listing.read,
        choose or round_robin(),
        empty_message=f"{api_url} lists no cluster" + f" with {filters}" * bool(filters),
    )


def round_robin() -> Choice:
    """Return a choice that takes the clusters in turn, ordered by name."""
    counter = itertools.count()

    def choose(candidates: Sequence[TargetCluster]) -> TargetCluster:
        ordered = sorted(candidates, key=lambda candidate: candidate.consumer)
        return ordered[next(counter) % len(ordered)]

    return choose


def least_loaded(candidates: Sequence[TargetCluster]) -> TargetCluster:
    """Choose the cluster with the lowest load; an unknown load comes last, and the name decides a tie."""
    return min(candidates, key=lambda candidate: (candidate.load is None, candidate.load or 0.0, candidate.consumer))


def _checked(text: str, origin: str) -> str:
    name = text.strip()
    problems = kubernetes_names.dns1123_label(name)
    if problems:
        raise ConfigError(f"{origin} is {name!r}: {problems[0]}", advice="set it to the name of a consumer")
    return name
