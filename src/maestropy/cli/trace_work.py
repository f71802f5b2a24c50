"""`maestro trace work`: from any identifier of a work to the whole relation, in one command."""

import sys
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cyclopts import App

from maestropy.cli import failure, running
from maestropy.cli.trace_options import AccessOptions, DepthOptions, EntryOptions, NarrowOptions, OutputOptions
from maestropy.trace.errors import BadQuestion, Declined, NoAccess, TraceError, Unreadable
from maestropy.trace.exits import Exit
from maestropy.trace.work.question import Manifest, Question, checked, parse_label, parse_list, parse_manifest

EXAMPLES = """\
Examples:

  maestro trace work --work-name nginx-work --svc-context svc --mgmt-context mgmt
      from the user's name, by contexts of one kubeconfig

  maestro trace work --manifest deployment/default/nginx --svc-kubeconfig svc.yaml --mgmt-kubeconfig mgmt.yaml
      from an object on the cluster, by two kubeconfig files

  maestro trace work --resource-id ID --db-dsn postgresql://maestro@db/maestro -o json
      for scripts; exit codes: 0 healthy, 1 problem, 2 usage, 3 unreadable input, 4 not found, 5 no access,
      6 inconclusive, 7 ambiguous, 8 declined

  maestro trace work --check --svc-context svc --mgmt-context mgmt
      what is missing before the first trace"""

app = App(
    name="work",
    # Written out, as the library would go through forty options to find the same.
    usage="maestro trace work [OPTIONS]",
    help="From any identifier of a work to the whole relation: name, resource, applied works, manifests, objects.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)
_EXITS = {BadQuestion: Exit.USAGE, Unreadable: Exit.UNREADABLE, NoAccess: Exit.NO_ACCESS, Declined: Exit.DECLINED}


@app.default
def act(
    *,
    entry: EntryOptions = EntryOptions(),  # noqa: B008 - frozen
    narrow: NarrowOptions = NarrowOptions(),  # noqa: B008 - frozen
    access: AccessOptions = AccessOptions(),  # noqa: B008 - frozen
    depth: DepthOptions = DepthOptions(),  # noqa: B008 - frozen
    output: OutputOptions = OutputOptions(),  # noqa: B008 - frozen
) -> int:
    """Trace a work."""
    try:
        question = None if depth.check else _question(entry, narrow)
        if question and depth.print_sql:
            return _print_sql(question, timeout=access.timeout)
        from maestropy.cli import trace_work_run

        if not question:
            return _run(trace_work_run.check(access))
        found: list[str] = []
        code = _run(trace_work_run.trace(question, access, depth=depth, output=output, found=found))
        if depth.then_request is not None and found:
            code = _then_request(found[0], depth.then_request) or code
    except ModuleNotFoundError as error:
        sys.stderr.write(f"Error: {error.name} is not installed; install maestropy[all], then trace again\n")
        return int(Exit.NO_ACCESS)
    except TraceError as error:
        sys.stderr.write(f"Error: {error}\n")
        code = next(code for kind, code in _EXITS.items() if isinstance(error, kind))
        return int(code)
    return 0 if output.exit_zero and code != Exit.INTERRUPTED else code


def _run(tracing: Coroutine[Any, Any, int]) -> int:
    """Run to the end, or until Ctrl-C: then what is open is closed in good order."""
    codes: list[int] = []

    async def work() -> None:
        codes.append(await tracing)

    async def watched(stop: running.Stop) -> int:
        try:
            await running.until(stop, work())
        except BaseExceptionGroup as error:
            raise failure.innermost(error) from None
        return codes[0] if codes else failure.INTERRUPTED

    return running.run(watched)


def _question(entry: EntryOptions, narrow: NarrowOptions) -> Question:
    given = _given(entry)
    if len(given) != 1:
        told = "none is given" if not given else "given are " + ", ".join(f"--{each.entry}" for each in given)
        raise BadQuestion(
            f"give exactly one of --resource-id, --work-name, --manifest, --applied-work, --label, --op-id, "
            f"--name-like, --file; {told}"
        )
    return checked(replace(given[0], consumer=narrow.consumer, source=narrow.source))


def _given(entry: EntryOptions) -> Sequence[Question]:
    found = []
    if entry.resource_id is not None:
        found.append(Question(entry="resource-id", values=(entry.resource_id,)))
    if entry.work_name is not None:
        found.append(Question(entry="work-name", values=(entry.work_name,)))
    if entry.manifest is not None:
        found.append(Question(entry="manifest", manifest=parse_manifest(entry.manifest)))
    if entry.manifest_kind is not None or entry.manifest_name is not None:
        found.append(Question(entry="manifest", manifest=_spelt(entry)))
    if entry.applied_work is not None:
        found.append(Question(entry="applied-work", values=(entry.applied_work,)))
    if entry.label is not None:
        found.append(Question(entry="label", values=parse_label(entry.label)))
    if entry.op_id is not None:
        found.append(Question(entry="op-id", values=(entry.op_id,)))
    if entry.name_like is not None:
        found.append(Question(entry="name-like", values=(entry.name_like,)))
    if entry.file is not None:
        found.append(Question(entry="file", values=parse_list(_read(entry.file))))
    return found


def _spelt(entry: EntryOptions) -> Manifest:
    kind, _, group = (entry.manifest_kind or "").partition(".")
    return Manifest(kind=kind, group=group, name=entry.manifest_name or "", namespace=entry.manifest_namespace or "")


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise Unreadable(f"--file {path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"--file {path} is no text; write one resource ID a line") from error


def _print_sql(question: Question, *, timeout: float) -> int:
    from maestropy.trace import psql
    from maestropy.trace.work import statements

    asked = statements.statement(question)
    sys.stdout.write(psql.question(asked.sql, asked.parameters, timeout_seconds=max(1, round(timeout))))
    return 0


def _then_request(resource_id: str, logs: Path) -> int:
    from maestropy.cli import trace_request, trace_request_options

    sys.stdout.write("\n")
    return trace_request.trace_request(str(logs), choice=trace_request_options.Choice(resource_id=resource_id))
