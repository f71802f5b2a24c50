"""`maestro diagnose collect`: gather everything about a Maestro into one archive."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Group, Parameter

from maestropy import installation
from maestropy.cli import errors, lifecycle, screen
from maestropy.cli.trace import endings, environment
from maestropy.cli.trace.work.options import AccessOptions
from maestropy.trace.errors import InvalidArguments, TraceError
from maestropy.trace.exit_codes import Exit

if TYPE_CHECKING:
    from maestropy.diagnose.collection.collect import CollectOptions, Result

EXAMPLES = """\
Examples:

  maestro diagnose collect -o incident.tar.zst
      everything, with the access of the current environment of `maestro config`

  maestro diagnose collect --consumer mgmt-1 --since 2h --svc-context svc --mgmt-context mgmt-1=mgmt
      one consumer and the last two hours, with contexts of a kubeconfig

  maestro diagnose collect --work nginx-work --db-dsn postgresql://maestro@db/maestro --logs ./maestro-logs
      one work, with logs or Kusto exports that you have

  maestro diagnose collect --anonymise -o share.tar.zst
      with pseudonyms; share.tar.zst.key stays with you

  maestro diagnose collect --resume -o incident.tar.zst
      continue a collection that was interrupted

Exit codes: 0 all collected, 2 usage, 3 an input is unreadable, 5 the archive lacks what could not be read, or nothing
could be read, 130 interrupted."""

app = App(
    name="collect",
    usage="maestro diagnose collect [OPTIONS]",
    help="Gather what servers, database, clusters and logs know into one archive. Secrets are removed, and nothing is "
    "written on a server, a database or a cluster.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)
_SCOPE = Group("What to collect", sort_key=1)
_ARCHIVE = Group("The archive", sort_key=2)
_SOURCES = Group("More sources", sort_key=4)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@Parameter(name="*", group=_SCOPE, show_default=False)
@dataclass(frozen=True, kw_only=True)
class ScopeOptions:
    """What to collect."""

    consumer: str = ""
    """Only this consumer: its works, history, events and cluster."""
    work: str = ""
    """Only this work: a resource ID, its name, KIND/[NAMESPACE/]NAME or KEY=VALUE of a label."""
    since: str = ""
    """Logs, history and events from this time on: 30m, 2h, 3d, or 2026-11-17T10:00:00Z. [all]"""
    until: str = ""
    """And up to this time. [now]"""
    hcp: str = ""
    """A hosted control plane to walk too: its ARM resource ID or Clusters Service ID."""


@Parameter(name="*", group=_ARCHIVE, show_default=False)
@dataclass(frozen=True, kw_only=True)
class ArchiveOptions:
    """The archive."""

    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("maestro-diagnose.tar.zst")
    """The file to write; it must not exist. [maestro-diagnose.tar.zst]"""
    max_size: str = "512M"
    """The limit of what is collected, before compression: 200M, 2G. Of logs, the newest part is kept. [512M]"""
    anonymise: Annotated[bool, Parameter(name=("--anonymise", "--anonymize"), negative=())] = False
    """Replace names and addresses by pseudonyms; only the key file turns them back."""
    key: Path | None = None
    """The key file of --anonymise; an existing one gives the same pseudonyms again. [OUTPUT.key]"""
    resume: Annotated[bool, Parameter(negative=())] = False
    """Continue an interrupted collection of the same output."""
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False
    """Do not show progress."""


@Parameter(name="*", group=_SOURCES, show_default=False)
@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Sources that the access options do not name."""

    logs: Annotated[list[str], Parameter(negative=())] = field(default_factory=list)
    """A log file, a folder of logs, or a Kusto export (CSV); may be repeated. [pods of the clusters]"""
    health_url: Annotated[list[str], Parameter(negative=())] = field(default_factory=list)
    """The health port of a server or an agent, such as http://localhost:8083; may be repeated. [those of pods]"""
    metrics_url: Annotated[list[str], Parameter(negative=())] = field(default_factory=list)
    """The metrics port of a server or an agent, such as http://localhost:8080; may be repeated."""
    broker_config: Path | None = None
    """The file of servers for MQTT or Pub/Sub: login, certificates, topics and subscriptions are read."""


@app.default
def collect(
    *,
    scope: ScopeOptions = ScopeOptions(),  # noqa: B008 - frozen
    archive: ArchiveOptions = ArchiveOptions(),  # noqa: B008 - frozen
    access: AccessOptions = AccessOptions(),  # noqa: B008 - frozen
    sources: SourceOptions = SourceOptions(),  # noqa: B008 - frozen
) -> int:
    """Collect an archive."""
    try:
        options = _options(scope, archive, access, sources)
        result = _run(options, is_quiet=archive.quiet)
    except ModuleNotFoundError as error:
        screen.write_error(f"Error: {error.name} is not installed; {installation.hint('diagnose')}\n")
        return int(Exit.NO_ACCESS)
    except TraceError as error:
        return endings.failed(error)
    if result is None:
        return errors.INTERRUPTED
    return _summary(result, key=options.key_file)


def _options(
    scope: ScopeOptions, archive: ArchiveOptions, access: AccessOptions, sources: SourceOptions
) -> "CollectOptions":
    from maestropy.aio.clock import Clock
    from maestropy.cli.trace.logs import inputs
    from maestropy.diagnose.collection.collect import CollectOptions
    from maestropy.diagnose.collection.scope import Scope

    if access.offline is not None:
        raise InvalidArguments(
            "--offline is a folder that was dumped already; trace it with `maestro trace work --offline`"
        )
    if archive.output.exists():
        raise InvalidArguments(f"--output {archive.output} exists already; name another file, or delete it")
    if archive.key is not None and not archive.anonymise:
        raise InvalidArguments("--key is the key file of --anonymise; give both")
    now = Clock().epoch()
    since = inputs.moment_or_age(scope.since, option="--since", now=now) if scope.since else 0.0
    until = inputs.moment_or_age(scope.until, option="--until", now=now) if scope.until else 0.0
    if until and until <= since:
        raise InvalidArguments("--until is not after --since")
    choice = environment.EnvironmentChoice(env=access.env, config=access.config)
    completed = environment.complete_work_access(access.access, choice, os.environ)
    health, metrics = environment.endpoints(choice, os.environ) if completed.environment else ((), ())
    key = archive.key or archive.output.with_name(f"{archive.output.name}.key")
    return CollectOptions(
        access=completed,
        hcp_access=environment.hcp_access_of(completed, choice, os.environ),
        output=archive.output,
        scope=Scope(consumer=scope.consumer, work=scope.work, since=since, until=until),
        logs=tuple(sources.logs),
        health_urls=tuple(sources.health_url) or health,
        metrics_urls=tuple(sources.metrics_url) or metrics,
        broker_config=sources.broker_config,
        hcp=scope.hcp,
        most_bytes=_bytes(archive.max_size),
        key_file=key if archive.anonymise else None,
        is_resumed=archive.resume,
    )


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,9})\s*([kmg]?)i?b?", text.strip().lower())
    if match is None or not int(match[1]):
        raise InvalidArguments(f"--max-size {text!r} is no size; write 200M or 2G")
    return int(match[1]) * _UNITS[match[2]]


def _run(options: "CollectOptions", *, is_quiet: bool) -> "Result | None":
    from maestropy.aio.clock import Clock
    from maestropy.cli.terminal import Terminal
    from maestropy.diagnose.collection import collect as collecting

    terminal = Terminal()
    results: list[Result] = []

    async def work() -> None:
        results.append(
            await collecting.collect(
                options,
                confirmer=terminal,
                progress=(lambda _: None) if is_quiet else terminal.notify,
                clock=Clock(),
            )
        )

    async def watched(stop: lifecycle.Stop) -> int:
        try:
            await lifecycle.run_until(stop, work())
        except BaseExceptionGroup as error:
            raise errors.innermost(error) from None
        return 0

    lifecycle.run(watched)
    if results:
        return results[0]
    folder = collecting.staging_folder(options.output)
    screen.write_error(f"interrupted; continue with --resume, or delete {folder}\n")
    return None


def _summary(result: "Result", *, key: Path | None) -> int:
    manifest = result.manifest
    screen.write(f"{result.path}  {_size(result.bytes)}\n")
    for section in manifest.sections:
        mark = {"collected": "✓", "partial": "!", "failed": "✗", "skipped": "-"}[section.state]
        reason = f": {section.reason}" if section.reason else ""
        screen.write(f"  {mark} {section.name} {section.state}{reason}\n")
    hidden = sum(manifest.hidden.values())
    screen.write(f"  {hidden} values were redacted.\n")
    if key is not None:
        screen.write(f"  Names are replaced; keep {key} to turn them back, and do not send it along.\n")
    screen.write(f"Next: maestro diagnose analyze {result.path}\n")
    return int(Exit.NO_ACCESS if result.missing else Exit.HEALTHY)


def _size(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB" if size >= 1 << 20 else f"{size / 1024:.0f} KiB"
