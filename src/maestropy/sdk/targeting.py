"""Which cluster should a work go to? Named once, read from the environment or a file, or chosen among those there are.

    target = targeting.from_hyperfleet("https://api", region="us-east", choose=targeting.least_loaded)
    works = client.works(await target.consumer())

Choosing is pure; asking is not.
"""

import itertools
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maestropy.sdk import manifests
from maestropy.sdk.errors import ConfigError, NotFound
from maestropy.sdk.management_clusters import Candidate as Candidate
from maestropy.sdk.management_clusters import Listing
from maestropy.sdk.management_clusters import candidates as candidates
from maestropy.wire import names

VARIABLE = "MANAGEMENT_CLUSTER_CONSUMER"
"""Where adapters are commonly told their cluster."""


Choice = Callable[[Sequence[Candidate]], Candidate]
"""Takes one of several candidates, of which there is at least one."""


class Target(Protocol):
    """Knows where works go."""

    async def consumer(self) -> str:
        """Return the name of the cluster for the next work."""


@dataclass(frozen=True, slots=True)
class _Fixed:
    find: Callable[[], str]

    async def consumer(self) -> str:
        return self.find()


@dataclass(frozen=True, slots=True)
class _Chosen:
    query: Callable[[], Awaitable[Iterable[Candidate | str]]]
    choose: Choice
    place: str = "there is none"

    async def consumer(self) -> str:
        found = [each if isinstance(each, Candidate) else Candidate(consumer=each) for each in await self.query()]
        if not found:
            raise NotFound(self.place, doing="choose a cluster", advice="check that one is there and healthy")
        return _checked(self.choose(found).consumer, "the chosen cluster")


def static(consumer: str) -> Target:
    """Always this cluster."""
    name = _checked(consumer, "consumer")
    return _Fixed(lambda: name)


def from_environment(variable: str = VARIABLE, *, environ: Mapping[str, str] | None = None) -> Target:
    """The cluster that an environment variable names, also when it comes from a ConfigMap."""
    source = os.environ if environ is None else environ

    def find() -> str:
        if not source.get(variable):
            raise ConfigError(f"{variable} is not set", advice="set it to the name of a consumer")
        return _checked(source[variable], variable)

    return _Fixed(find)


def from_file(path: str | Path, *, key: str = "") -> Target:
    """The cluster that a file names, such as a mounted ConfigMap; read anew for every work.

    Without `key` the whole file is the name; with it the file is YAML and the key stands in it, or below its `data`.
    """

    def find() -> str:
        try:
            text = Path(path).read_text()
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}", advice="mount the ConfigMap") from error
        if not key:
            return _checked(text, str(path))
        document = manifests.read(text)[0]
        found = document.get(key) or (document.get("data") or {}).get(key)
        if not isinstance(found, str):
            raise ConfigError(f"{path} has no {key}", advice="add it with the name of a consumer")
        return _checked(found, f"{key} of {path}")

    return _Fixed(find)


def from_query(query: Callable[[], Awaitable[Iterable[Candidate | str]]], *, choose: Choice | None = None) -> Target:
    """One of the clusters that `query` returns; in turn, unless another choice is given."""
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
    """One of the management clusters that the HyperFleet API lists for a region and status.

    It is asked for every work anew, and again for `timeout` seconds when it fails.
    """
    wanted = {name: value for name, value in (("region", region), ("status", status)) if value}
    listing = Listing(api_url=api_url, query=wanted, token_file=token_file, timeout=timeout)

    among = " and ".join(f"{name} {value}" for name, value in wanted.items())
    return _Chosen(
        listing.read, choose or round_robin(), place=f"{api_url} lists none" + f" with {among}" * bool(among)
    )


def round_robin() -> Choice:
    """Return a choice that takes the candidates in turn, in the order of their names."""
    turns = itertools.count()

    def choose(found: Sequence[Candidate]) -> Candidate:
        ordered = sorted(found, key=lambda each: each.consumer)
        return ordered[next(turns) % len(ordered)]

    return choose


def least_loaded(found: Sequence[Candidate]) -> Candidate:
    """Take the candidate that carries least; one whose load nobody knows comes last, and names decide a tie."""
    return min(found, key=lambda each: (each.load is None, each.load or 0.0, each.consumer))


def _checked(text: str, origin: str) -> str:
    name = text.strip()
    problems = names.dns1123_label(name)
    if problems:
        raise ConfigError(f"{origin} is {name!r}: {problems[0]}", advice="set it to the name of a consumer")
    return name
