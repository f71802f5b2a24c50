"""`maestro adapter run`: one event from its file or environment to its report; the entry point of a Job."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import adapter_world, failure, running
from maestropy.cli.adapter_world import WorldFlags
from maestropy.cli.failure import UsageError

if TYPE_CHECKING:
    from maestropy.adapter.definition import Adapter
    from maestropy.adapter.event import Event
    from maestropy.adapter.pipeline import Outcome
    from maestropy.adapter.recording import Recording
    from maestropy.adapter.report import Report
    from maestropy.adapter.resource import Resource
    from maestropy.adapter.results import Results

EXAMPLES = """\
Examples:

  maestro adapter run adapter.py --event event.json --dry-run
      show what would be applied and reported; nothing is contacted

  maestro adapter run adapter.py --event event.json --resource cluster.json
      deal with one event

  maestro adapter run adapter.py --wait 10m --results /results/adapter-result.json
      a Job: the event comes from EVENT, or CLUSTER_ID and GENERATION; waits until available

  maestro adapter run adapter.py --event event.json --record run.json
  maestro adapter run adapter.py --replay run.json
      keep what happened, and do it again without a fleet

Exit codes: 0 the report is out; 1 the adapter failed, and will again; 75 run it again; 2 a mistake in the
call or the environment."""

app = App(
    name="run",
    help="Deal with one event, as a Job does.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(  # noqa: PLR0913 - one parameter per flag
    adapter: Annotated[str, Parameter(help="A file, a folder with adapter.py, or module:name.")],
    /,
    *,
    event: Annotated[Path | None, Parameter(help="The CloudEvent, or its data. Default: EVENT, CLUSTER_ID …")] = None,
    resource: Annotated[
        Path | None, Parameter(help="The resource as JSON. Default: the HyperFleet API (HYPERFLEET_API_URL).")
    ] = None,
    wait: Annotated[str, Parameter(help="How long to wait until available, such as 10m.")] = "0",
    results: Annotated[
        Path | None, Parameter(help="Where results are written (RESULTS_PATH).", show_default=False)
    ] = None,
    dry_run: Annotated[bool, Parameter(negative="", help="Contact nothing; show what would be done.")] = False,
    record: Annotated[Path | None, Parameter(help="Keep what is asked and answered in this file.")] = None,
    replay: Annotated[Path | None, Parameter(help="Answer from such a file, as a dry run does.")] = None,
    world: WorldFlags | None = None,
) -> int:
    """Deal with one event."""
    from maestropy.adapter import loading

    loaded = loading.load(adapter)
    recorded = _recording(replay)
    found = _event(event, recorded=recorded)
    given = _resource(resource, found)
    flags = world or WorldFlags()
    if dry_run or recorded is not None:
        return running.run(lambda _: _show(loaded, found, given=given, recorded=recorded, consumer=flags.consumer))
    job = _Job(
        loaded,
        found,
        given=given,
        wait=adapter_world.seconds(wait, flag="--wait"),
        results=_results(results),
        record=record,
    )
    return running.run(lambda stop: job.run(flags, stop))


class _Job:
    """One run that is not a show."""

    def __init__(
        self,
        adapter: "Adapter",
        event: "Event",
        *,
        given: "Resource | None",
        wait: float,
        results: "Results | None",
        record: Path | None,
    ) -> None:
        self.adapter, self.event, self.given = adapter, event, given
        self.wait, self.results, self.record = wait, results, record

    async def run(self, flags: WorldFlags, stop: running.Stop) -> int:
        """Run, and leave results behind however it ends."""
        import logging

        from maestropy.adapter import running as kit

        logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
        if self.results is not None:
            self.results.check()
        ended: list[Outcome] = []

        async def work() -> None:
            ended.append(await self._dealt_with(flags))

        try:
            await running.until(stop, work())
        except BaseException as error:
            self._leave(self._failed("NotStarted", failure.sentence(failure.innermost(error))))
            raise
        if not ended:
            self._leave(self._failed("Interrupted", "the adapter was asked to stop before it was done"))
            return kit.AGAIN
        outcome = ended[0]
        if outcome.report is not None:
            self._leave(outcome.report)
        self._say(outcome)
        return kit.exit_code(outcome, is_awaited=self.wait > 0)

    async def _dealt_with(self, flags: WorldFlags) -> "Outcome":
        from maestropy.adapter import recording
        from maestropy.adapter import running as kit

        limit = adapter_world.seconds(flags.event_timeout, flag="--event-timeout")
        patience = kit.Patience(wait_seconds=self.wait, event_seconds=limit)
        async with adapter_world.opened(self.adapter, flags, given=self.given) as world:
            recorder = recording.Recorder(world, self.event)
            outcome = await kit.deal(self.adapter, self.event, world=recorder, patience=patience, tells_transient=True)
            if self.record is not None:
                recorder.recording().save(self.record)
        return outcome

    def _failed(self, reason: str, message: str) -> "Report":
        from maestropy.adapter import report

        return report.failed(self.adapter.name, self.event.generation, reason=reason, message=message)

    def _leave(self, report: "Report") -> None:
        if self.results is not None:
            self.results.write(report)

    def _say(self, outcome: "Outcome") -> None:
        if outcome.report is None:
            sys.stdout.write(f"{self.event.kind} {self.event.resource_id} is gone; nothing to do\n")
            return
        sys.stdout.write("".join(f"{line}\n" for line in _conditions(outcome)))


def _conditions(outcome: "Outcome") -> list[str]:
    assert outcome.report
    width = max(len(each.type) for each in outcome.report.conditions)
    lines = [
        f"{each.type:<{width}}  {each.status:<7}  {each.reason}{f': {each.message}' if each.message else ''}"
        for each in outcome.report.conditions
    ]
    return [*lines, *(f"{key} = {_shown(value)}" for key, value in outcome.report.data.items())]


def _shown(value: object) -> str:
    import orjson

    return value if isinstance(value, str) else orjson.dumps(value).decode()


async def _show(
    adapter: "Adapter",
    event: "Event",
    *,
    given: "Resource | None",
    recorded: "Recording | None",
    consumer: str | None,
) -> int:
    from maestropy.adapter import dryrun
    from maestropy.adapter import running as kit

    where = consumer or os.environ.get("MANAGEMENT_CLUSTER_CONSUMER") or dryrun.NOWHERE
    show = dryrun.DryRun(dryrun.Given(event=event, resource=given, consumer=where, recorded=recorded))
    patience = kit.Patience(settle_seconds=0 if recorded is None else 3)
    outcome = await kit.deal(adapter, event, world=show, patience=patience, tells_transient=True)
    for each in show.asked:
        sys.stdout.write("".join(f"{line}\n" for line in dryrun.lines(each)))
    return kit.exit_code(outcome, is_awaited=False)


def _event(path: Path | None, *, recorded: "Recording | None") -> "Event":
    from maestropy.adapter import event

    if path is not None:
        return event.parse(_text(path, "--event"))
    if recorded is not None:
        import orjson

        return event.parse(orjson.dumps(dict(recorded.event)))
    found = event.from_environment(os.environ)
    if found is None:
        raise UsageError("there is no event: give --event FILE, or set EVENT, or CLUSTER_ID and GENERATION")
    return found


def _resource(path: Path | None, found: "Event") -> "Resource | None":
    named = path or (Path(os.environ["RESOURCE_FILE"]) if os.environ.get("RESOURCE_FILE") else None)
    if named is None:
        return None
    from maestropy.adapter import resource
    from maestropy.wire import jsontypes

    return resource.parse(jsontypes.decode_object(_text(named, "--resource"), what=str(named)), found)


def _recording(path: Path | None) -> "Recording | None":
    if path is None:
        return None
    from maestropy.adapter.recording import Recording

    return Recording.load(path)


def _results(path: Path | None) -> "Results | None":
    from maestropy.adapter.results import VARIABLE, Results

    named = path or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    return Results(named) if named else None


def _text(path: Path, flag: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(f"{flag}={path} cannot be read: {error.strerror}") from error
