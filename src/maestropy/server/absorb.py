"""Stage: reports of agents become statuses.

The agent hears "OK" only when its report is stored (or known to change nothing), so what it was told can be relied
on. Reports are judged under the same locks a Go server takes.
"""

from collections.abc import Sequence
from datetime import datetime

from maestropy.aio import batches
from maestropy.journal.fields import Absorb as Phrase
from maestropy.journal.fields import Key, Logger
from maestropy.server import describe
from maestropy.server.decide import intake
from maestropy.server.locked import locked
from maestropy.server.world import World
from maestropy.store import errors as store_errors
from maestropy.store import pool, rows, statuses

Outcome = intake.Verdict | store_errors.StoreError


class Absorb:
    """Takes reports, many in one transaction."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self._batcher: batches.Batcher[intake.Report, intake.Verdict] = batches.Batcher(self._handle)

    async def submit(self, report: intake.Report) -> intake.Verdict:
        """Return what became of `report`; when this returns a change, it is durable."""
        fields = describe.with_operation(report.operation_id, report.id)
        self._journal.info(Phrase.STATUS_RECEIVED, fields)
        return await self._batcher.submit(report, key=report.id, size=report.size)

    async def run(self) -> None:
        """Handle reports until `stop`, and then those that had been taken."""
        await self._batcher.run()

    def stop(self) -> None:
        """Take no new reports."""
        self._batcher.stop()

    async def _handle(self, reports: Sequence[intake.Report]) -> Sequence[Outcome]:
        return await self._isolate(reports, patient=True)

    async def _isolate(self, reports: Sequence[intake.Report], *, patient: bool) -> Sequence[Outcome]:
        """Absorb a group; if one report spoils it, take them one by one, so that only that one suffers."""
        try:
            return await self._absorb(reports, patient=patient)
        except (store_errors.BadValue, store_errors.Locked) as error:
            if len(reports) > 1:
                return [(await self._isolate([report], patient=False))[0] for report in reports]
            if isinstance(error, store_errors.BadValue):
                return [intake.Reject(f"the database cannot hold a value of the status: {error}")]
            return self._failed(reports, error)
        except store_errors.StoreError as error:
            return self._failed(reports, error)

    def _failed(self, reports: Sequence[intake.Report], error: store_errors.StoreError) -> Sequence[Outcome]:
        for report in reports:
            fields = describe.with_operation(report.operation_id, report.id)
            self._journal.error(Phrase.HANDLE_FAILED, fields, err=error)
        return [error] * len(reports)

    async def _absorb(self, reports: Sequence[intake.Report], *, patient: bool) -> Sequence[Outcome]:
        ids = [report.id for report in reports]
        now = self._world.now()
        async with locked(self._world, ids, kind="resource_status", patient=patient) as connection:
            held = await statuses.read_for_report(connection, ids)
            doubtful = [each.id for each in reports if intake.could_be_of_another(held.get(each.id), each)]
            said = await statuses.last_words(connection, doubtful) if doubtful else {}
            verdicts = [
                intake.judge(held.get(report.id), report, last_word=said.get(report.id, "")) for report in reports
            ]
            judged = [(held.get(report.id), report, verdict) for report, verdict in zip(reports, verdicts, strict=True)]
            await self._write(connection, judged, now=now)
        for before, report, verdict in judged:
            self._tell(before, report, verdict, now=now)
        return verdicts

    async def _write(
        self,
        connection: pool.Connection,
        judged: Sequence[tuple[rows.Observed | None, intake.Report, intake.Verdict]],
        *,
        now: datetime,
    ) -> None:
        updates: list[rows.NewStatus] = []
        finished: list[rows.NewStatus] = []
        dropped: list[str] = []
        for held, report, verdict in judged:
            if held is None:
                continue
            match verdict:
                case intake.Update():
                    updates.append(self._new_status(held, report))
                case intake.Finish():
                    finished.append(self._new_status(held, report))
                case intake.Redeliver():
                    dropped.append(report.id)
        if updates:
            await statuses.write_statuses(connection, updates, now=now)
            self._world.metrics.resources_processed(len(updates))
        if finished:
            await statuses.finish(connection, finished, now=now)
        if dropped:
            event_ids = [self._world.new_id() for _ in dropped]
            await statuses.redeliver(connection, dropped, event_ids=event_ids, now=now)

    def _new_status(self, held: rows.Observed, report: intake.Report) -> rows.NewStatus:
        return rows.NewStatus(
            id=report.id,
            source=held.source,
            document=intake.stored_status(held, report),
            event_id=self._world.new_id(),
        )

    def _tell(
        self, held: rows.Observed | None, report: intake.Report, verdict: intake.Verdict, *, now: datetime
    ) -> None:
        journal = self._journal
        fields = describe.with_operation(report.operation_id, report.id)
        match verdict:
            case intake.Update():
                journal.info(Phrase.HANDLING, fields)
                journal.info(Phrase.UPDATING, {**fields, **describe.event_fields(journal, report.received)})
                journal.info(Phrase.UPDATE_SENT, fields)
                if held is not None and not held.sequence_id:
                    journal.info(Phrase.FIRST_STATUS, fields, v=4)
                    self._world.metrics.first_status(held.consumer, held.source, now - held.created_at)
            case intake.Finish():
                journal.info(Phrase.HANDLING, fields)
                journal.info(Phrase.DELETE_SENT, fields)
            case intake.Redeliver():
                journal.warning(
                    "the agent removed another resource than this one; what there is, is sent again", fields
                )
            case intake.Reject(reason):
                journal.error(Phrase.HANDLE_FAILED, {**fields, Key.EVENT_TYPE: report.received.type}, err=reason)
            case intake.Ignore(reason, stale) if stale and held is not None:
                versions = {Key.FOUND_VERSION: held.version, Key.WANT_VERSION: report.version}
                journal.info(Phrase.STALE, {**fields, **versions})
            case intake.Ignore(reason):
                journal.info("status update changes nothing", {**fields, Key.REASON: reason})
