"""Let one of several processes lead, by a Lease that the leader keeps renewing.

The rules are those of Kubernetes' own clients, so that ours and theirs can compete for one Lease: a candidate takes
over when the record did not change for as long as it promises to be renewed, measured on the candidate's own clock.
Whoever cannot renew in time stops leading before anybody else may start.
`consider` decides; `Candidate` and `lead` carry it out.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import Crew
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType

LEASES = ResourceType(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease", namespaced=True)


class LeadershipLost(errors.KubeError):
    """The Lease could not be renewed in time, or somebody else holds it: stop at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Which Lease, who we are, and how long things take (seconds). The times are those of OpenShift's operators."""

    namespace: str
    name: str
    identity: str
    """Unique among the candidates: two with one identity would both lead."""
    lease_seconds: float = 137.0
    """How long others wait for a silent leader."""
    renew_seconds: float = 107.0
    """How long a leader tries to renew before it stops leading; less than the above."""
    retry_seconds: float = 26.0
    """Pause between attempts to acquire or renew."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A record as it was first seen so, on our monotonic clock."""

    spec: Json
    at: float


@dataclass(frozen=True, slots=True)
class Create:
    """Nobody ever led: write this Lease."""

    lease: Json


@dataclass(frozen=True, slots=True)
class Update:
    """Take over or renew: write this Lease, if nobody else does first."""

    lease: Json


@dataclass(frozen=True, slots=True)
class Wait:
    """Somebody leads."""

    holder: str


Move = Create | Update | Wait


def observe(lease: Json | None, *, before: Sighting | None, at: float) -> Sighting:
    """Return what is known of the record now: an unchanged one keeps the time it was first seen."""
    spec = _spec(lease)
    return before if before is not None and before.spec == spec else Sighting(spec=spec, at=at)


def consider(lease: Json | None, sighting: Sighting, *, terms: Terms, at: float, now: datetime) -> Move:
    """Return what a candidate does about `lease` (None if there is none); `at` is monotonic, `now` for the record."""
    if lease is None:
        metadata = {"namespace": terms.namespace, "name": terms.name}
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
        return Create({**body, "spec": _record(terms, acquired=_micro_time(now), now=now, transitions=0)})
    spec = _spec(lease)
    holder = str(spec.get("holderIdentity") or "")
    if holder == terms.identity:
        # Renewing keeps the history of the record.
        acquired = str(spec.get("acquireTime") or _micro_time(now))
        return Update({**lease, "spec": spec | _record(terms, acquired=acquired, now=now, transitions=_count(spec))})
    if holder and at < sighting.at + _promised(spec, terms):
        return Wait(holder)
    record = _record(terms, acquired=_micro_time(now), now=now, transitions=_count(spec) + 1)
    return Update({**lease, "spec": spec | record})


def released(lease: Json, *, now: datetime) -> Json:
    """Return a Lease that the next candidate may take at once."""
    record = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "renewTime": _micro_time(now),
        "acquireTime": _micro_time(now),
    }
    return {**lease, "spec": _spec(lease) | record}


def _spec(lease: Json | None) -> Json:
    found: Any = (lease or {}).get("spec")
    return found if isinstance(found, dict) else {}


def _count(spec: Json) -> int:
    found = spec.get("leaseTransitions")
    return found if isinstance(found, int) else 0


def _promised(spec: Json, terms: Terms) -> float:
    """Return the seconds the holder promised to renew within; ours if it did not say."""
    found = spec.get("leaseDurationSeconds")
    return float(found) if isinstance(found, int) and found > 0 else terms.lease_seconds


def _record(terms: Terms, *, acquired: str, now: datetime, transitions: int) -> Json:
    return {
        "holderIdentity": terms.identity,
        # The API server takes whole seconds, at least one.
        "leaseDurationSeconds": max(1, round(terms.lease_seconds)),
        "acquireTime": acquired,
        "renewTime": _micro_time(now),
        "leaseTransitions": transitions,
    }


def _micro_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Candidate:
    """One process that wants to lead."""

    def __init__(
        self,
        client: KubeClient,
        terms: Terms,
        *,
        clock: Clock,
        jitter: Callable[[], float],
        on_trouble: Callable[[errors.KubeError], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._terms = terms
        self._clock = clock
        self._jitter = jitter
        self._on_trouble = on_trouble
        self._sighting: Sighting | None = None
        self._renewed_at = 0.0
        self.leader = ""
        """Who leads, as far as we know."""

    @property
    def is_leading(self) -> bool:
        """Whether we were the last to be granted the lease."""
        return self.leader == self._terms.identity

    async def acquire(self) -> None:
        """Return when we lead."""
        while True:
            if await self._try():
                return
            # Others wait as long as we do; chance keeps them from asking in step.
            await asyncio.sleep(self._terms.retry_seconds * (1 + self._jitter()))

    async def keep(self) -> None:
        """Renew for as long as that works; raises LeadershipLost when it did not in time."""
        terms = self._terms
        while True:
            await asyncio.sleep(terms.retry_seconds)
            left = self._renewed_at + terms.renew_seconds - self._clock.monotonic()
            try:
                async with asyncio.timeout(max(0.0, left)):
                    while not await self._try():
                        if not self.is_leading:
                            raise LeadershipLost(f"the lease {terms} is held by {self.leader}")
                        await asyncio.sleep(terms.retry_seconds)
            except TimeoutError as error:
                raise LeadershipLost(f"the lease {terms} was not renewed within {terms.renew_seconds:g}s") from error

    async def release(self) -> None:
        """Let the next one lead now rather than when the lease runs out; a failure only costs them that wait."""
        terms = self._terms
        try:
            lease = await self._client.get(LEASES, terms.name, namespace=terms.namespace)
            if _spec(lease).get("holderIdentity") == terms.identity:
                await self._client.update(LEASES, released(lease, now=self._clock.now()))
        except errors.KubeError as error:
            self._on_trouble(error)

    async def _try(self) -> bool:
        """Try once to acquire or renew; a failed request is no more than a failed try."""
        # Measured before asking: what the API server grants counts from when it was asked at the earliest.
        asked_at = self._clock.monotonic()
        try:
            lease = await self._read()
            self._sighting = observe(lease, before=self._sighting, at=self._clock.monotonic())
            move = consider(lease, self._sighting, terms=self._terms, at=self._clock.monotonic(), now=self._clock.now())
            if isinstance(move, Wait):
                self.leader = move.holder
                return False
            written = await (
                self._client.create(LEASES, move.lease)
                if isinstance(move, Create)
                else self._client.update(LEASES, move.lease)
            )
        except errors.KubeError as error:
            self._on_trouble(error)
            return False
        self._sighting = observe(written, before=None, at=self._clock.monotonic())
        self._renewed_at = asked_at
        self.leader = self._terms.identity
        return True

    async def _read(self) -> Json | None:
        try:
            return await self._client.get(LEASES, self._terms.name, namespace=self._terms.namespace)
        except errors.NotFound:
            return None


async def lead(candidate: Candidate, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Wait to lead, do `work` while leading, and let go once it has stopped.

    Raises LeadershipLost, after cancelling the work, when the lease is lost; otherwise what `work` raises.
    """
    await candidate.acquire()
    crew = Crew()
    try:
        crew.start("kube.leases.keep", candidate.keep())
        crew.start("kube.leases.work", work())
        await crew.wait()
    finally:
        await crew.stop()
        await candidate.release()
