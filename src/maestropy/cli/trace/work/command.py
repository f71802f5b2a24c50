"""`maestro trace work`: trace a work from any of its identifiers."""

import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from cyclopts import App

from maestropy import installation
from maestropy.cli import errors, lifecycle, screen
from maestropy.cli.trace import endings, seconds
from maestropy.cli.trace.work.options import AccessOptions, DepthOptions, NarrowOptions, OutputOptions, WorkEntryOptions
from maestropy.trace.errors import InputUnreadable, InvalidArguments, TraceError
from maestropy.trace.exit_codes import Exit
from maestropy.trace.work.query import (
    ManifestQuery,
    WorkIdentifier,
    WorkQuery,
    from_identifier,
    named_by,
    parse_list,
)
from maestropy.untrusted import files
from maestropy.untrusted.errors import InputRejected

EXAMPLES = """\
Examples:

  maestro trace work --work-name nginx-work --svc-context svc --mgmt-context mgmt
      by work name, with contexts of one kubeconfig

  maestro trace work nginx-work --env prod
      the same with an environment of `maestro config`; also for a resource ID, KIND/[NAMESPACE/]NAME or KEY=VALUE

  maestro trace work --manifest deployment/default/nginx --svc-kubeconfig svc.yaml --mgmt-kubeconfig mgmt.yaml
      by an object on the cluster, with two kubeconfig files

  maestro trace work --resource-id ID --db-dsn postgresql://maestro@db/maestro -o json
      for scripts; exit codes: 0 healthy, 1 problem, 2 usage, 3 unreadable input, 4 not found, 5 no access,
      6 inconclusive, 7 ambiguous, 8 declined

  maestro trace work --check --svc-context svc --mgmt-context mgmt
      check what a trace needs"""

app = App(
    name="work",
    # Written out, as the library would go through forty options to find the same.
    usage="maestro trace work [IDENTIFIER] [OPTIONS]",
    help="Trace a work from any of its identifiers: name, resource ID, applied work, manifest or object.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(
    *words: str,
    entry: WorkEntryOptions = WorkEntryOptions(),  # noqa: B008 - frozen
    narrow: NarrowOptions = NarrowOptions(),  # noqa: B008 - frozen
    access: AccessOptions = AccessOptions(),  # noqa: B008 - frozen
    depth: DepthOptions = DepthOptions(),  # noqa: B008 - frozen
    output: OutputOptions = OutputOptions(),  # noqa: B008 - frozen
) -> int:
    """Trace a work.

    Parameters
    ----------
    words
        The identifier without its flag: a resource ID, an applied work, KIND/NAME, KEY=VALUE or the name of a work.
    """
    try:
        from maestropy.cli.trace.work import run as trace_work_run

        if depth.check:
            return _run(trace_work_run.check(access))
        identifier = _with_word(_identifier(entry, narrow), words)
        # Checked before anything is opened.
        query = from_identifier(**identifier)
        if depth.print_sql:
            return _print_sql(query, timeout=seconds.checked(access.timeout, option="--timeout"))
        resource_ids: list[str] = []
        tracing = trace_work_run.trace(identifier, access, depth=depth, output=output, resource_ids=resource_ids)
        code = _run(tracing)
        if depth.then_request is not None and resource_ids:
            code = _then_request(resource_ids[0], depth.then_request) or code
    except ModuleNotFoundError as error:
        screen.write_error(f"Error: {error.name} is not installed; {installation.hint('trace')}\n")
        return int(Exit.NO_ACCESS)
    except TraceError as error:
        return endings.failed(error)
    return 0 if output.exit_zero and code != Exit.INTERRUPTED else code


def _run(tracing: Coroutine[Any, Any, int]) -> int:
    """Run to the end, or until Ctrl-C: then what is open is closed in good order."""
    codes: list[int] = []

    async def work() -> None:
        codes.append(await tracing)

    async def watched(stop: lifecycle.Stop) -> int:
        try:
            await lifecycle.run_until(stop, work())
        except BaseExceptionGroup as error:
            raise errors.innermost(error) from None
        return codes[0] if codes else errors.INTERRUPTED

    return lifecycle.run(watched)


def _identifier(entry: WorkEntryOptions, narrow: NarrowOptions) -> WorkIdentifier:
    identifier: WorkIdentifier = {
        "consumer": narrow.consumer,
        "source": narrow.source,
        "search_all": narrow.search_all,
    }
    for name in ("resource_id", "work_name", "applied_work", "label", "op_id", "name_like"):
        value = getattr(entry, name)
        if value is not None:
            identifier[name] = value
    if entry.manifest is not None and (entry.manifest_kind is not None or entry.manifest_name is not None):
        raise InvalidArguments("--manifest already contains kind and name; leave out --manifest-kind, --manifest-name")
    if entry.manifest is not None:
        identifier["manifest"] = entry.manifest
    elif entry.manifest_kind is not None or entry.manifest_name is not None:
        identifier["manifest"] = _manifest_query(entry)
    if entry.file is not None:
        identifier["resource_ids"] = parse_list(_read(entry.file))
    return identifier


def _with_word(identifier: WorkIdentifier, words: Sequence[str]) -> WorkIdentifier:
    """Add an identifier that was given without its flag."""
    if len(words) > 1:
        raise InvalidArguments(f"{len(words)} identifiers are given; name one, or write them to a file for --file")
    return {**identifier, **named_by(words[0])} if words else identifier


def _manifest_query(entry: WorkEntryOptions) -> ManifestQuery:
    kind, _, group = (entry.manifest_kind or "").partition(".")
    return ManifestQuery(
        kind=kind, group=group, name=entry.manifest_name or "", namespace=entry.manifest_namespace or ""
    )


def _read(path: Path) -> str:
    try:
        if str(path) == "-":
            content = files.read_stream(sys.stdin.buffer, most=files.CONFIG_BYTES, name="standard input")
            return content.decode("utf-8")
        return files.read_text(path, most=files.CONFIG_BYTES)
    except InputRejected as error:
        raise InputUnreadable(f"--file: {error}; trace fewer works at once") from error
    except OSError as error:
        raise InputUnreadable(f"--file {path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputUnreadable(f"--file {path} is not text; write one resource ID per line") from error


def _print_sql(query: WorkQuery, *, timeout: float) -> int:
    from maestropy.trace import psql
    from maestropy.trace.work import statements

    statement = statements.statement(query)
    screen.write(psql.query(statement.sql, statement.parameters, timeout_seconds=max(1, round(timeout))))
    return 0


def _then_request(resource_id: str, logs: Path) -> int:
    from maestropy.cli.trace.logs import request, request_options

    screen.write("\n")
    return request.trace_request(str(logs), choice=request_options.RequestChoice(resource_id=resource_id))
