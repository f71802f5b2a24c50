"""`maestro adapter run`: handle one event from a file or the environment; the entry point of a Job."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import errors, lifecycle, overwriting, screen
from maestropy.cli.adapter import dependencies
from maestropy.cli.adapter.dependencies import ConnectionFlags
from maestropy.cli.errors import UsageError
from maestropy.untrusted import files, printable
from maestropy.untrusted.errors import InputRejected

if TYPE_CHECKING:
    from maestropy.adapter.decide.adapter_status import AdapterStatus
    from maestropy.adapter.decide.pipeline import EventOutcome
    from maestropy.adapter.definition import Adapter
    from maestropy.adapter.event import Event
    from maestropy.adapter.resource import Resource
    from maestropy.adapter.results import Results
    from maestropy.adapter.transports.interruptible import InterruptiblePerformer
    from maestropy.adapter.transports.recording import Recording

_STOP_SECONDS = 15.0
"""For the report of the status after SIGTERM; Kubernetes kills a pod after 30 seconds."""

EXAMPLES = """\
Examples:

  maestro adapter run adapter.py --event event.json --dry-run
      show the effects and the status; contact no server

  maestro adapter run adapter.py --event event.json --resource cluster.json
      handle one event

  maestro adapter run adapter.py --wait 10m --results /results/adapter-result.json
      as a Job: read the event from EVENT, or CLUSTER_ID and GENERATION, and wait until available

  maestro adapter run adapter.py --event event.json --record run.json
  maestro adapter run adapter.py --replay run.json
      record a run, and replay it without a fleet

Exit codes: 0 the status was reported; 1 the adapter failed, and a retry cannot help, or a replay deviates from
its recording; 75 run it again;
2 a mistake in the command line or the environment, such as a missing results directory.
SIGTERM ends the wait, reports the works as they are and exits with 75."""

app = App(
    name="run",
    help="Handle one event, as a Job does.",
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
    wait: Annotated[str, Parameter(help="The time to wait until available, such as 10m.")] = "0",
    results: Annotated[
        Path | None, Parameter(help="The file or folder for results (RESULTS_PATH).", show_default=False)
    ] = None,
    dry_run: Annotated[bool, Parameter(negative="", help="Contact no server; show the effects.")] = False,
    record: Annotated[Path | None, Parameter(help="Record effects and their results in this file.")] = None,
    replay: Annotated[Path | None, Parameter(help="Replay such a file as a dry run.")] = None,
    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], negative="", help="Show the traceback of a failure of the adapter.")
    ] = False,
    connection: ConnectionFlags | None = None,
) -> int:
    """Handle one event."""
    from maestropy.cli.adapter import early_failure

    is_shown = dry_run or replay is not None
    if not is_shown:
        read = [*_adapter_files(adapter), *(path for path in (event, resource, _resource_file()) if path)]
        _check_outputs(early_failure.named_results(results), record=record, read=read)
    early = early_failure.EarlyRun(results=None if is_shown else early_failure.named_results(results))
    flags = connection or ConnectionFlags()
    with early.stop_written():
        with early.failure_written():
            loaded = dependencies.loaded(adapter, verbose=verbose)
            early.adapter = loaded.name
            recorded = _recording(replay)
            parsed = _event(event, recorded=recorded)
            early.generation, early.is_deleting = parsed.generation, parsed.is_deleting
            loaded_resource = _resource(resource, parsed)
            if loaded_resource is not None:
                early.is_deleting = loaded_resource.is_deleting
            seconds = dependencies.seconds(wait, flag="--wait")
        _log_to_standard_error(verbose=verbose)
        if is_shown:
            return lifecycle.run(
                lambda _: _show(loaded, parsed, resource=loaded_resource, recorded=recorded, flags=flags)
            )
        job = _Job(loaded, parsed, resource=loaded_resource, wait=seconds, results=early.results, record=record)
        return lifecycle.run(lambda stop: job.run(flags, stop))


class _Job:
    """One run that carries effects out."""

    def __init__(
        self,
        adapter: "Adapter",
        event: "Event",
        *,
        resource: "Resource | None",
        wait: float,
        results: "Results | None",
        record: Path | None,
    ) -> None:
        self.adapter, self.event, self.resource = adapter, event, resource
        self.wait, self.results, self.record = wait, results, record

    async def run(self, flags: ConnectionFlags, stop: lifecycle.Stop) -> int:
        """Handle the event and write the results, also after a failure."""
        from maestropy.adapter import runner
        from maestropy.cli.adapter import early_failure

        if self.results is not None:
            self.results.check()
        outcomes: list[EventOutcome] = []

        async def work() -> None:
            outcomes.append(await self._handle(flags, stop))

        try:
            await lifecycle.run_until(stop, work(), grace_seconds=_STOP_SECONDS)
        except BaseException as error:
            self._write(self._failed(early_failure.NOT_STARTED, errors.sentence(errors.innermost(error))))
            raise
        if not outcomes:
            self._write(self._failed(early_failure.INTERRUPTED, "the adapter was stopped before it finished"))
            return runner.AGAIN
        outcome = outcomes[0]
        if outcome.status is not None:
            self._write(outcome.status)
        self._print(outcome)
        return runner.exit_code(outcome, is_awaited=self.wait > 0)

    async def _handle(self, flags: ConnectionFlags, stop: lifecycle.Stop) -> "EventOutcome":
        import asyncio

        from maestropy.adapter import runner
        from maestropy.adapter.transports import recording
        from maestropy.adapter.transports.interruptible import InterruptiblePerformer
        from maestropy.cli.adapter import watchdog

        limit = dependencies.seconds(flags.event_timeout, flag="--event-timeout")
        timeouts = runner.EventTimeouts(wait_seconds=self.wait, event_seconds=limit)
        async with (
            watchdog.ends_after(limit + _STOP_SECONDS),
            dependencies.opened(self.adapter, flags, resource=self.resource) as performer,
        ):
            interruptible = InterruptiblePerformer(performer)
            recorder = recording.Recorder(interruptible, self.event)
            async with asyncio.TaskGroup() as group:
                stopping = group.create_task(_interrupt(interruptible, stop), name="interrupt on stop request")
                outcome = await runner.handle(
                    self.adapter, self.event, performer=recorder, timeouts=timeouts, reports_transient=True
                )
                stopping.cancel()
            if self.record is not None:
                recorder.recording().save(self.record)
        return outcome

    def _failed(self, reason: str, message: str) -> "AdapterStatus":
        from maestropy.adapter.decide import adapter_status

        is_deleting = self.event.is_deleting if self.resource is None else self.resource.is_deleting
        return adapter_status.failed(
            self.adapter.name, self.event.generation, reason=reason, message=message, is_deleting=is_deleting
        )

    def _write(self, status: "AdapterStatus") -> None:
        if self.results is not None:
            self.results.write(status)

    def _print(self, outcome: "EventOutcome") -> None:
        if outcome.status is None:
            screen.write(f"{self.event.kind} {self.event.resource_id} is gone; nothing to do\n")
            return
        screen.write("".join(f"{printable.escape(line)}\n" for line in _conditions(outcome)))


async def _interrupt(performer: "InterruptiblePerformer", stop: lifecycle.Stop) -> None:
    await stop.wait()
    performer.stop()


def _log_to_standard_error(*, verbose: bool) -> None:
    import logging

    from maestropy.cli.adapter import logs

    logs.write_to_standard_error(logging.WARNING, line_format="%(message)s", verbose=verbose)


def _conditions(outcome: "EventOutcome") -> list[str]:
    assert outcome.status
    width = max(len(condition.type) for condition in outcome.status.conditions)
    lines = []
    for condition in outcome.status.conditions:
        message = f": {condition.message}" if condition.message else ""
        lines.append(f"{condition.type:<{width}}  {condition.status:<7}  {condition.reason}{message}")
    return [*lines, *(f"{key} = {_shown(value)}" for key, value in outcome.status.data.items())]


def _shown(value: object) -> str:
    import orjson

    return value if isinstance(value, str) else orjson.dumps(value).decode()


async def _show(
    adapter: "Adapter",
    event: "Event",
    *,
    resource: "Resource | None",
    recorded: "Recording | None",
    flags: ConnectionFlags,
) -> int:
    from maestropy.adapter import runner
    from maestropy.adapter.transports import dry_run

    target = flags.consumer or os.environ.get("MANAGEMENT_CLUSTER_CONSUMER") or dry_run.PLACEHOLDER_CONSUMER
    dry = dry_run.DryRun(dry_run.DryRunInputs(event=event, resource=resource, consumer=target, recorded=recorded))
    limit = dependencies.seconds(flags.event_timeout, flag="--event-timeout")
    timeouts = runner.EventTimeouts(event_seconds=limit, settle_seconds=0 if recorded is None else 3)
    outcome = await runner.handle(adapter, event, performer=dry, timeouts=timeouts, reports_transient=True)
    for effect in dry.effects:
        screen.write("".join(f"{printable.escape(line)}\n" for line in dry_run.lines(effect)))
    if recorded is None and outcome.status is not None and outcome.status.finalized.status == "True":
        screen.write("note    assuming that no works exist; record a real run with --record, and --replay it\n")
    code = runner.exit_code(outcome, is_awaited=False)
    if not dry.deviations:
        return code
    listed = "".join(f"  {printable.escape(deviation)}\n" for deviation in dry.deviations)
    screen.write_error(f"Error: the run deviates from the recording:\n{listed}")
    return code or runner.FAILED


def _event(path: Path | None, *, recorded: "Recording | None") -> "Event":
    from maestropy.adapter import event
    from maestropy.adapter.errors import MalformedEvent

    if path is not None:
        try:
            return event.parse(_text(path, "--event"))
        except MalformedEvent as error:
            raise UsageError(f"{path}: {error}") from error
    if recorded is not None:
        import orjson

        return event.parse(orjson.dumps(dict(recorded.event)))
    try:
        parsed = event.from_environment(os.environ)
    except MalformedEvent as error:
        raise UsageError(f"the event in the environment: {error}") from error
    if parsed is None:
        raise UsageError("there is no event: give --event FILE, or set EVENT, or CLUSTER_ID and GENERATION")
    return parsed


def _resource(path: Path | None, event: "Event") -> "Resource | None":
    named = path or _resource_file()
    if named is None:
        return None
    from maestropy.adapter import event as events
    from maestropy.adapter import resource
    from maestropy.adapter.errors import MalformedEvent
    from maestropy.sdk.errors import Invalid

    try:
        return resource.parse(events.decode_object(_text(named, "--resource"), label="the resource"), event)
    except MalformedEvent as error:
        raise UsageError(f"{named}: {error}") from error
    except Invalid as error:
        raise UsageError(f"{named}: {error.reason}") from error


def _resource_file() -> Path | None:
    return Path(os.environ["RESOURCE_FILE"]) if os.environ.get("RESOURCE_FILE") else None


def _adapter_files(reference: str) -> list[Path]:
    path = Path(reference.partition(":")[0])
    return list(path.glob("*.py")) if path.is_dir() else [path]


def _check_outputs(results: "Results | None", *, record: Path | None, read: list[Path]) -> None:
    """Raise UsageError for an output that would overwrite an input, and for a recording that cannot be written."""
    outputs: dict[str, Path | None] = {"--record": record}
    if results is not None:
        outputs |= {"--results": results.result, "the report of --results": results.report}
    problem = overwriting.problem(outputs, read)
    if not problem and record is not None:
        problem = _record_problem(record)
    if problem:
        raise UsageError(problem)


def _record_problem(record: Path) -> str:
    """Return why a recording cannot be written; found before works are applied, not after."""
    folder = record.absolute().parent
    if not folder.is_dir():
        return f"--record {record}: there is no folder {folder}; create it, or name another file"
    if record.exists() and not record.is_file():
        return f"--record {record} is not a regular file; name another file"
    if not os.access(record if record.exists() else folder, os.W_OK):
        return f"--record {record} cannot be written: Permission denied; name another file"
    return ""


def _recording(path: Path | None) -> "Recording | None":
    if path is None:
        return None
    from maestropy.adapter.transports.recording import Recording

    return Recording.load(path)


def _text(path: Path, flag: str) -> bytes:
    try:
        if str(path) == "-":
            return files.read_stream(sys.stdin.buffer, most=files.MANIFEST_BYTES, name=f"{flag}: standard input")
        return files.read(path, most=files.MANIFEST_BYTES)
    except InputRejected as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{flag}={path} cannot be read: {error.strerror}") from error
