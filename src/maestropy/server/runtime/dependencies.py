"""Check each dependency of a running server by itself, for `/readyz?verbose`."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from maestropy.aio import checks
from maestropy.server.brokers import port
from maestropy.server.controllers.instances.membership import Membership
from maestropy.server.primary_watch import PrimaryWatch
from maestropy.server.read_replica import ReadReplica
from maestropy.store import errors
from maestropy.transport.tls import expiry

CHECK_SECONDS: Final = 2.0
"""Shorter than the timeout of a probe."""


class Dependencies:
    """The database and its read replica, this instance among the others, the message broker and the certificates."""

    def __init__(
        self,
        membership: Membership,
        primary_watch: PrimaryWatch,
        *,
        replica: ReadReplica | None,
        broker: port.MessageBroker | None,
        certificates: Sequence[expiry.WatchedCertificate],
        now: Callable[[], float],
    ) -> None:
        self._membership = membership
        self._primary_watch = primary_watch
        self._replica = replica
        self._broker = broker
        self._certificates = certificates
        self._now = now

    async def check(self) -> Sequence[checks.Check]:
        """Return every dependency with its reason. Replica, broker and certificates never make an instance unready."""
        return [
            *await self._database(),
            *self._read_replica(),
            *self._message_broker(),
            *expiry.checked(self._certificates, now=self._now()),
        ]

    async def _database(self) -> list[checks.Check]:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                problem = await self._primary_watch.check()
                is_ready = not problem and await self._membership.is_ready()
        except TimeoutError:
            return [checks.failed("database", f"no answer within {CHECK_SECONDS:g} s")]
        except errors.StoreError as error:
            return [checks.failed("database", str(error))]
        if problem:
            return [checks.ok("database"), checks.failed("database-writable", problem)]
        found = [checks.ok("database"), checks.ok("database-writable")]
        if is_ready:
            return [*found, checks.ok("instance")]
        reason = "it starts, stops, or has sent no heartbeat for three intervals"
        return [*found, checks.failed("instance", reason)]

    def _read_replica(self) -> list[checks.Check]:
        if self._replica is None:
            return []
        problem = self._replica.problem
        return [checks.warning("read-replica", f"degraded: {problem}") if problem else checks.ok("read-replica")]

    def _message_broker(self) -> list[checks.Check]:
        if self._broker is None:
            return []
        reason = self._broker.problem or self._broker.last_error
        if self._broker.is_online:
            return [checks.warning("message-broker", reason)] if reason else [checks.ok("message-broker")]
        detail = f"not connected{f': {reason}' if reason else ''}; specs and statuses wait"
        return [checks.warning("message-broker", detail)]
