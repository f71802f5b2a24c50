"""Leader election with a Lease, by the rules of client-go.

Processes with client-go can compete for the same Lease. A candidate takes over when the Lease has not changed for its
duration, measured on the candidate's own clock. A leader that cannot renew in time stops before another one may start.
`decide` is pure; `LeaderElector` and `run_while_leading` carry it out.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import TaskOwner
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType

LEASES = ResourceType(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease", namespaced=True)


class LeadershipLost(errors.KubeError):
    """The Lease was not renewed in time, or another process holds it: stop at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionSettings:
    """The Lease, our identity and the times in seconds; the defaults are those of OpenShift operators."""

    namespace: str
    name: str
    identity: str
    """Must be unique among the candidates: two with the same identity would both lead."""
    lease_seconds: float = 137.0
    """How long candidates wait for a leader that does not renew."""
    renew_seconds: float = 107.0
    """How long a leader tries to renew before it stops leading; less than `lease_seconds`."""
    retry_seconds: float = 26.0
    """Pause between attempts to acquire or renew."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLease:
    """The spec of a Lease and when it was first observed, on our monotonic clock."""

    spec: Json
    at: float


@dataclass(frozen=True, slots=True)
class CreateLease:
    """There is no Lease: create this one."""

    lease: Json


@dataclass(frozen=True, slots=True)
class UpdateLease:
    """Take over or renew: update the Lease, unless another process does so first."""

    lease: Json


@dataclass(frozen=True, slots=True)
class HeldByOther:
    """Another process leads."""

    holder: str


LeaseAction = CreateLease | UpdateLease | HeldByOther


def observe(lease: Json | None, *, previous: ObservedLease | None, at: float) -> ObservedLease:
    """Return the observed Lease; an unchanged spec keeps the time of its first observation."""
    spec = _spec(lease)
    return previous if previous is not None and previous.spec == spec else ObservedLease(spec=spec, at=at)


def decide(
    lease: Json | None, observed: ObservedLease, *, settings: LeaderElectionSettings, at: float, now: datetime
) -> LeaseAction:
    """Return the action of a candidate on `lease` (None if absent); `at` is monotonic, `now` goes into the Lease."""
    if lease is None:
        metadata = {"namespace": settings.namespace, "name": settings.name}
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
        return CreateLease({**body, "spec": _record(settings, acquired=_micro_time(now), now=now, transitions=0)})
    spec = _spec(lease)
    holder = str(spec.get("holderIdentity") or "")
    if holder == settings.identity:
        # A renewal keeps acquireTime and leaseTransitions.
        acquired = str(spec.get("acquireTime") or _micro_time(now))
        return UpdateLease(
            {**lease, "spec": spec | _record(settings, acquired=acquired, now=now, transitions=_count(spec))}
        )
    if holder and at < observed.at + _lease_duration(spec, settings):
        return HeldByOther(holder)
    record = _record(settings, acquired=_micro_time(now), now=now, transitions=_count(spec) + 1)
    return UpdateLease({**lease, "spec": spec | record})


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
    value: Any = (lease or {}).get("spec")
    return value if isinstance(value, dict) else {}


def _count(spec: Json) -> int:
    value = spec.get("leaseTransitions")
    return value if isinstance(value, int) else 0


def _lease_duration(spec: Json, settings: LeaderElectionSettings) -> float:
    """Return the lease duration of the holder in seconds; ours if it is not set."""
    value = spec.get("leaseDurationSeconds")
    return float(value) if isinstance(value, int) and value > 0 else settings.lease_seconds


def _record(settings: LeaderElectionSettings, *, acquired: str, now: datetime, transitions: int) -> Json:
    return {
        "holderIdentity": settings.identity,
        # The API server accepts whole seconds, at least one.
        "leaseDurationSeconds": max(1, round(settings.lease_seconds)),
        "acquireTime": acquired,
        "renewTime": _micro_time(now),
        "leaseTransitions": transitions,
    }


def _micro_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaderElector:
    """Acquires, renews and releases the Lease for one process."""

    def __init__(
        self,
        client: KubeClient,
        settings: LeaderElectionSettings,
        *,
        clock: Clock,
        jitter: Callable[[], float],
        on_error: Callable[[errors.KubeError], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._jitter = jitter
        self._on_error = on_error
        self._observed: ObservedLease | None = None
        self._renewed_at = 0.0
        self.leader = ""
        """The identity of the last observed leader."""

    @property
    def is_leading(self) -> bool:
        """Whether this process was the last to get the Lease."""
        return self.leader == self._settings.identity

    async def acquire(self) -> None:
        """Wait until this process leads."""
        while True:
            if await self._try_once():
                return
            # Jitter keeps the candidates from sending at the same time.
            await asyncio.sleep(self._settings.retry_seconds * (1 + self._jitter()))

    async def renew(self) -> None:
        """Renew the Lease periodically; raises `LeadershipLost` when it was not renewed in time."""
        settings = self._settings
        while True:
            await asyncio.sleep(settings.retry_seconds)
            remaining = self._renewed_at + settings.renew_seconds - self._clock.monotonic()
            try:
                async with asyncio.timeout(max(0.0, remaining)):
                    while not await self._try_once():
                        if not self.is_leading:
                            raise LeadershipLost(f"the lease {settings} is held by {self.leader}")
                        await asyncio.sleep(settings.retry_seconds)
            except TimeoutError as error:
                raise LeadershipLost(
                    f"the lease {settings} was not renewed within {settings.renew_seconds:g}s"
                ) from error

    async def release(self) -> None:
        """Release the Lease, so that the next leader need not wait until it expires; a failure only delays it."""
        settings = self._settings
        try:
            lease = await self._client.get(LEASES, settings.name, namespace=settings.namespace)
            if _spec(lease).get("holderIdentity") == settings.identity:
                await self._client.update(LEASES, released(lease, now=self._clock.now()))
        except errors.KubeError as error:
            self._on_error(error)

    async def _try_once(self) -> bool:
        """Try once to acquire or renew; return False if that failed."""
        # Measured before sending: the lease duration may begin as early as the request.
        sent_at = self._clock.monotonic()
        try:
            lease = await self._read()
            self._observed = observe(lease, previous=self._observed, at=self._clock.monotonic())
            action = decide(
                lease, self._observed, settings=self._settings, at=self._clock.monotonic(), now=self._clock.now()
            )
            if isinstance(action, HeldByOther):
                self.leader = action.holder
                return False
            written = await (
                self._client.create(LEASES, action.lease)
                if isinstance(action, CreateLease)
                else self._client.update(LEASES, action.lease)
            )
        except errors.KubeError as error:
            self._on_error(error)
            return False
        self._observed = observe(written, previous=None, at=self._clock.monotonic())
        self._renewed_at = sent_at
        self.leader = self._settings.identity
        return True

    async def _read(self) -> Json | None:
        try:
            return await self._client.get(LEASES, self._settings.name, namespace=self._settings.namespace)
        except errors.NotFound:
            return None


async def run_while_leading(candidate: LeaderElector, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Wait to lead, run `work` while leading, then release the Lease.

    Raises `LeadershipLost`, after cancelling the work, when the Lease is lost; otherwise the error of `work`.
    """
    await candidate.acquire()
    task_owner = TaskOwner()
    try:
        task_owner.start("kube.leases.keep", candidate.renew())
        task_owner.start("kube.leases.work", work())
        await task_owner.wait()
    finally:
        await task_owner.stop()
        await candidate.release()
