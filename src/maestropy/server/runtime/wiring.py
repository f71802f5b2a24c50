"""Connect the controllers of one instance: what wakes what, what runs periodically, and the order of start and stop.

It opens no port and listens to no notification: `main` does, and a simulation does in its own way. No decisions.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

from maestropy.aio import tasks
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import MaintenancePhrase, ResyncPhrase
from maestropy.server.brokers import port
from maestropy.server.brokers.grpc_streams import GrpcStreams
from maestropy.server.brokers.subscribers import Subscribers
from maestropy.server.brokers.unfinished_answers import UnfinishedAnswers
from maestropy.server.context import Context
from maestropy.server.controllers.agents.agent_presence import EVERY as PRESENCE_EVERY
from maestropy.server.controllers.agents.agent_presence import AgentPresence
from maestropy.server.controllers.agents.resync import Resync
from maestropy.server.controllers.history.history_retention import EVERY as RETENTION_EVERY
from maestropy.server.controllers.history.history_retention import HistoryRetention
from maestropy.server.controllers.history.history_writer import HistoryWriter
from maestropy.server.controllers.instances.membership import Membership
from maestropy.server.controllers.maintenance import Maintenance, Thresholds
from maestropy.server.controllers.operator_actions import OperatorActions
from maestropy.server.controllers.spec.delete_recovery import REPORT_EVERY, DeleteRecovery
from maestropy.server.controllers.spec.spec_dispatcher import SpecDispatcher
from maestropy.server.controllers.spec.spec_writer import SpecWriter
from maestropy.server.controllers.status.status_dispatcher import StatusDispatcher
from maestropy.server.controllers.status.status_intake import StatusIntake
from maestropy.server.controllers.status.status_recheck import StatusRecheck
from maestropy.server.controllers.status.status_writer import StatusWriter
from maestropy.server.decide.delete_recovery import PAUSE, RecoveryPolicy
from maestropy.server.decide.history.retention import Limits
from maestropy.server.dispatch.spec_sender import SpecSender
from maestropy.server.primary_watch import PrimaryWatch
from maestropy.server.runtime.broker_wiring import MessageBrokerControllers, Targets, open_message_broker
from maestropy.server.settings import ServerSettings

# A subscriber with this much in its mailbox does not read any more; it is disconnected, reconnects and resyncs.
_MAILBOX_ITEMS = 20_000
_MAILBOX_BYTES = 64 * 2**20
_GAUGES_EVERY = timedelta(seconds=30)
_SWEEPS_UNTIL_ORPHANS = 10
"""It reads every pending event, and those of an absent fleet are many."""
_RESUMPTIONS_EVERY = timedelta(seconds=2)
# A stopping server releases its agents at the rate at which another one takes them, but not for longer than this.
_RELEASED_PER_SECOND = 500
_RELEASE_SECONDS = 8.0
# The instance that changed a resource wrote its own time, and a transaction becomes visible later than that.
_CLOCKS_DIFFER = timedelta(seconds=60)


class Controllers:
    """The writers, the dispatchers and the periodic controllers of one instance."""

    def __init__(self, settings: ServerSettings, context: Context, *, delays: Callable[[], Iterator[float]]) -> None:
        self._settings = settings
        self._context = context
        self._notified_until: datetime | None = None
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self.agent_subscribers = Subscribers(max_items=_MAILBOX_ITEMS, max_bytes=_MAILBOX_BYTES)
        self.source_subscribers = Subscribers(max_items=_MAILBOX_ITEMS, max_bytes=_MAILBOX_BYTES)
        message_broker = open_message_broker(settings, context, delays=delays)
        broker: port.Broker = message_broker or GrpcStreams(self.agent_subscribers)
        recovery = _recovery(settings)
        sender = SpecSender(context, broker, recovery=recovery)
        keeps_history = settings.history.enabled
        self.history = HistoryWriter(context, is_enabled=keeps_history)
        self.history_retention = HistoryRetention(context, _history_limits(settings), record=self.history.add_own)
        self.spec_writer = SpecWriter(context, problem_with=broker.problem_with, keeps_history=keeps_history)
        self.spec_dispatcher = SpecDispatcher(context, broker, sender)
        self.resync = Resync(context, broker, sender, wake_dispatcher=self.spec_dispatcher.wake_ups.request_rescan)
        self.agent_answers = UnfinishedAnswers(
            self.agent_subscribers, on_failure=partial(self._log_failed_answer, LogKey.CONSUMER)
        )
        self.source_answers = UnfinishedAnswers(
            self.source_subscribers, on_failure=partial(self._log_failed_answer, LogKey.SOURCE)
        )
        self.operator_actions = OperatorActions(
            context,
            keeps_history=keeps_history,
            sees_agents=broker.capabilities.reports_subscriptions,
            connected=broker.consumers,
        )
        self.presence = AgentPresence(
            context, connected=broker.consumers, record=self.history.add if keeps_history else None
        )
        self.status_recheck = StatusRecheck(context, request=self.resync.request_statuses_of)
        self.status_writer = StatusWriter(
            context,
            agents_get_errors=broker.capabilities.agents_get_errors,
            reaches=broker.reaches,
            recheck=self.status_recheck.add,
            keeps_history=keeps_history,
        )
        self.status_dispatcher = StatusDispatcher(context, self.source_subscribers)
        self.status_intake = StatusIntake(context, submit=self.status_writer.submit)
        self.message_broker: MessageBrokerControllers | None = None
        if message_broker is not None:
            targets = Targets(
                spec_dispatcher=self.spec_dispatcher,
                resync=self.resync,
                status_writer=self.status_writer,
                presence=self.presence,
            )
            self.message_broker = MessageBrokerControllers.build(
                settings, context, message_broker, targets=targets, delays=delays
            )
            self.status_intake = self.message_broker.intake
        self.membership = Membership(
            context,
            heartbeat=timedelta(seconds=settings.health.heartbeat_interval),
            can_take_part=_can_take_part(settings, message_broker),
            on_database_changed=self._resync_clients,
        )
        self.primary_watch = PrimaryWatch(context, on_promotion=self._resync_clients)
        self.maintenance = Maintenance(
            context,
            thresholds=_thresholds(settings),
            rescan=self.rescan,
            connected_consumers=broker.consumers,
        )
        self.delete_recovery = DeleteRecovery(context, recovery)
        self._draining: list[asyncio.Task[None]] = []
        self._connected: asyncio.Task[None] | None = None

    @property
    def channels(self) -> Mapping[str, Callable[[str], None]]:
        """What a notification of the database leads to, by channel."""
        return {
            "events": self.spec_dispatcher.wake_ups.add,
            "status_events": self.status_dispatcher.wake_ups.add,
            "maestropy_resyncs": self._resync_consumer,
        }

    @property
    def broker_problem(self) -> str:
        """What an operator has to change at the message broker; empty if nothing is known."""
        return self.message_broker.broker.problem if self.message_broker is not None else ""

    def rescan(self) -> None:
        """Let the dispatchers read everything that is pending: notifications may have been lost."""
        self.spec_dispatcher.wake_ups.request_rescan()
        self.status_dispatcher.wake_ups.request_rescan()

    def note_listening(self) -> None:
        """Note that no notification has been lost until now."""
        self._notified_until = self._context.now()

    def on_notification_gap(self) -> None:
        """Find what was missed while there were no notifications.

        A rescan finds what is pending. But an event is reconciled when one instance has sent it to its agents; where
        agents of one consumer are connected to several instances, the others send what changed meanwhile.
        """
        if self._notified_until is not None:
            self.spec_dispatcher.resend_changed_since(self._notified_until - _CLOCKS_DIFFER)
        self.note_listening()
        self.rescan()

    def _resync_consumer(self, consumer: str) -> None:
        """Let the agents of a consumer resync: those connected here reconnect, others are asked through the broker."""
        self.agent_subscribers.close_topic(consumer)
        if self.message_broker is not None:
            self.message_broker.request_statuses(consumer)

    def _log_failed_answer(self, key: str, topic: str, error: BaseException) -> None:
        self._journal.error(ResyncPhrase.ANSWER_FAILED, {key: topic}, err=error)

    async def _resync_clients(self) -> None:
        """Let agents and sources resync: the database may lack what it had acknowledged."""
        self.agent_subscribers.close_all()
        self.source_subscribers.close_all()
        if self.message_broker is not None:
            await self.message_broker.messages.on_messages_lost()

    def start(self, task_owner: tasks.TaskOwner) -> None:
        """Start to handle requests and events."""
        self._draining = [
            task_owner.start("spec writer", self.spec_writer.run()),
            task_owner.start("status writer", self.status_writer.run()),
        ]
        task_owner.start("status dispatcher", self.status_dispatcher.run())
        task_owner.start("answers to sources", self.source_answers.run())
        task_owner.start("history writer", self.history.run())
        if self._has_broker:
            task_owner.start("spec dispatcher", self.spec_dispatcher.run())
            self.resync.start(task_owner)
            task_owner.start("answers to agents", self.agent_answers.run())
            task_owner.start("status recheck", self.status_recheck.run())

    async def join(self, task_owner: tasks.TaskOwner) -> None:
        """Become a member of the instances, connect to the broker and start the periodic tasks."""
        await self.membership.join()
        if self.message_broker is not None:
            self._connected = await self.message_broker.start(task_owner, on_error=self.log_failure_of("ownership"))
        heartbeat = self._settings.health.heartbeat_interval
        maintenance_seconds = self._settings.delivery.sweep_interval.total_seconds()
        for name, seconds, task in (
            ("heartbeat", heartbeat, self.membership.beat),
            ("liveness", max(1.0, heartbeat / 3), self.membership.update_readiness),
            ("rescan", maintenance_seconds, self.maintenance.rescan),
            ("purge", maintenance_seconds, self.maintenance.purge),
            ("orphan events", _SWEEPS_UNTIL_ORPHANS * maintenance_seconds, self.maintenance.retire_orphans),
            ("record", 1.0, self.status_dispatcher.record),
            ("queues", 1.0, self._measure_queues),
            ("detect", self.maintenance.detectors_every.total_seconds(), self.maintenance.detect),
            ("gauges", _GAUGES_EVERY.total_seconds(), self.maintenance.measure),
            ("presence", PRESENCE_EVERY.total_seconds(), self.presence.write),
            ("resumptions", _RESUMPTIONS_EVERY.total_seconds(), self._resync_resumed),
        ):
            task_owner.start(name, tasks.run_periodically(seconds, task, on_error=self.log_failure_of(name)))
        if self.history.is_enabled:
            retention = tasks.run_periodically(
                RETENTION_EVERY.total_seconds(), self._maintain_history, on_error=self.log_failure_of("history")
            )
            task_owner.start("history", retention)
        if self._has_broker and _recovery(self._settings).initial:
            self._start_delete_recovery(task_owner)

    async def _resync_resumed(self) -> None:
        """Let agents resync that asked for it during a pause which is over."""
        for consumer in await self.resync.take_resumed():
            self.agent_subscribers.close_topic(consumer)

    async def _measure_queues(self) -> None:
        self.spec_dispatcher.measure()
        self.status_dispatcher.measure()

    async def _maintain_history(self) -> None:
        self.history.note_left_out()
        await self.history_retention.run_round()

    @property
    def _has_broker(self) -> bool:
        return self._settings.serves_agents or self.message_broker is not None

    def _start_delete_recovery(self, task_owner: tasks.TaskOwner) -> None:
        self._journal.info(MaintenancePhrase.RECOVERY_STARTING)
        for name, seconds, task in (
            ("delete recovery", PAUSE.total_seconds(), self.delete_recovery.run_round),
            ("delete recovery metrics", REPORT_EVERY.total_seconds(), self.delete_recovery.report),
        ):
            task_owner.start(name, tasks.run_periodically(seconds, task, on_error=self.log_failure_of(name)))

    @property
    def release_seconds(self) -> float:
        """How long it takes to end the streams of all agents."""
        return min(_RELEASE_SECONDS, self.agent_subscribers.count / _RELEASED_PER_SECOND)

    async def release_clients(self) -> None:
        """End every stream: those of agents so slowly that another instance can take one after the other."""
        self.source_subscribers.close_all()
        await self.agent_subscribers.close_gradually(seconds=self.release_seconds)
        self.end_streams()

    def end_streams(self) -> None:
        """End every stream, after the messages that are queued."""
        self.agent_subscribers.close_all()
        self.source_subscribers.close_all()

    async def finish(self) -> None:
        """Finish what was accepted; nothing new comes in any more."""
        if self.message_broker is not None and self._connected is not None:
            self.message_broker.stop()
            await asyncio.wait([self._connected])
        self.spec_writer.stop()
        self.status_writer.stop()
        await asyncio.gather(*self._draining)
        await tasks.attempt(self.status_dispatcher.record, on_error=self.log_failure_of("record"))
        await tasks.attempt(self.history.finish, on_error=self.log_failure_of("history"))

    def log_failure_of(self, name: str) -> Callable[[Exception], None]:
        """Return a function that logs a failure of the periodic task `name`."""

        def log(error: Exception) -> None:
            self._journal.error(MaintenancePhrase.TASK_FAILED, {LogKey.ACTION: name}, err=error)

        return log


def _can_take_part(settings: ServerSettings, message_broker: port.MessageBroker | None) -> Callable[[], bool]:
    """Return whether an instance can own consumers: not while it receives no messages of their agents."""
    if message_broker is None or settings.delivery.subscription_type != "broadcast":
        return lambda: True
    return lambda: message_broker.is_within_grace


def _recovery(settings: ServerSettings) -> RecoveryPolicy:
    delivery = settings.delivery
    return RecoveryPolicy(
        initial=timedelta(seconds=delivery.delete_republish_interval),
        longest=timedelta(seconds=delivery.delete_republish_max_interval),
        batch=delivery.delete_republish_batch_size,
    )


def _history_limits(settings: ServerSettings) -> Limits:
    return Limits(age=settings.history.retention, bytes=settings.history.max_megabytes * 2**20)


def _thresholds(settings: ServerSettings) -> Thresholds:
    delivery = settings.delivery
    return Thresholds(
        undelivered=timedelta(seconds=delivery.undelivered_threshold),
        stale_delete=timedelta(seconds=delivery.stale_delete_threshold),
        event_retention=delivery.event_retention,
    )
