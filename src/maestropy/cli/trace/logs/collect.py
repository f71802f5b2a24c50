"""`maestro trace logs`: collect the logs of pods, print queries for log services, check what logs cover."""

import os
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from maestropy.cli import screen
from maestropy.cli.trace.logs import inputs
from maestropy.cli.trace.logs import pods as trace_pods
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.exit_codes import Exit

app = App(
    name="logs",
    help="Collect logs, print queries for a log service, check what logs cover.",
    help_epilogue="""\
Examples:

  maestro trace logs collect --svc-context svc --mgmt-context mgmt --since 30m --out ./maestro-logs
  maestro trace logs kql 83dcf85d-3b0a-5f98-a940-fa44f1d2d465 --since 1h --for server
  maestro trace logs check ./maestro-logs""",
    help_format="plaintext",
    version_flags=[],
)


@app.command(name="check")
def check(
    *paths: Annotated[str, Parameter(allow_leading_hyphen=True)],
    output: Annotated[Literal["text", "json"], Parameter(name=("-o", "--output"))] = "text",
) -> int:
    """Report the pods, times, generations and verbosities of log files.

    Parameters
    ----------
    paths
        Files, directories, archives, or - for standard input.
    output
        Text, or JSON for programs.
    """

    def act() -> int:
        from maestropy.cli.trace.logs import run as log_trace

        arguments = inputs.separate(paths, inputs.NO_LOGS, environ=os.environ)
        if arguments.identifiers:
            raise inputs.not_a_path(arguments.identifiers[0])
        return log_trace.check(arguments.needed(), output=output)

    return inputs.guarded(act, exit_zero=False)


@app.command(name="kql")
def kql(
    *identifiers: str,
    since: Annotated[str, Parameter(name="--since", show_default=False)] = "10m",
    until: Annotated[str, Parameter(name="--until", show_default=False)] = "",
    table: Literal["containerLogs", "kubesystem"] = "containerLogs",
    subject: Annotated[Literal["server", "agent", "events", "all"], Parameter(name="--for")] = "all",
) -> int:
    """Print Kusto queries whose CSV exports `maestro trace` reads.

    Parameters
    ----------
    identifiers
        Resource IDs or op-ids to narrow the result to.
    since
        Start of the window, a time or an age; keep it short. [10m]
    until
        End of the window. [now]
    table
        containerLogs (today's tables) or kubesystem (the older ones).
    subject
        server, agent, events (of older agents), or all.
    """
    from maestropy.aio.clock import Clock
    from maestropy.trace.logs.kql import KqlWindow, query
    from maestropy.trace.report.json_model import stamp

    def act() -> int:
        now = Clock().epoch()
        start = inputs.moment_or_age(since, option="--since", now=now)
        end = inputs.moment_or_age(until, option="--until", now=now) if until else now
        if end <= start:
            raise InvalidArguments("--until is not after --since; name a window of some minutes")
        window = KqlWindow(start=_seconds(stamp(start)), end=_seconds(stamp(end)), identifiers=identifiers)
        subjects = ("server", "agent", "events") if subject == "all" else (subject,)
        screen.write("\n".join(f"// {subject}\n{query(table, subject, window)}" for subject in subjects))
        return Exit.HEALTHY

    return inputs.guarded(act, exit_zero=False)


def _seconds(stamp: str | None) -> str:
    return f"{(stamp or '')[:19]}Z"


@app.command(name="collect")
def collect(
    *,
    out: Annotated[Path | None, Parameter(name="--out")] = None,
    since: str = "",
    pods: Annotated[trace_pods.Pods, Parameter(name="*")] = trace_pods.NO_PODS,
) -> int:
    """Dump the logs of all server and agent pods, current and previous, from both clusters at once.

    Parameters
    ----------
    out
        The directory to write to. Default: maestro-logs, or the directory in the variable logs_dir.
    since
        Only records newer than this, such as 30m.
    """
    import asyncio

    def act() -> int:
        from maestropy.trace.access.collect import collect as fetch

        pod_options = trace_pods.with_variables(pods, os.environ)
        # With the variables of the older script, logs go where that script wrote them.
        usual = Path("maestro-logs") if pod_options is pods else Path.home() / "maestro-logs"
        folder = out or Path(os.environ.get("logs_dir") or usual)  # noqa: SIM112 - as scripts spell it
        age = inputs.seconds(since, option="--since") if since else 0.0
        components = trace_pods.components(pod_options, environ=os.environ, home=Path.home())
        results = asyncio.run(fetch(components, folder, since_seconds=round(age)))
        for result in results:
            screen.write("".join(f"{path}\n" for path in result.files))
            screen.write_error("".join(f"Warning: {problem}\n" for problem in result.problems))
        if any(result.files for result in results):
            screen.write(f"Next: maestro trace requests {folder}\n")
        is_complete = all(result.files and result.is_complete for result in results)
        return Exit.HEALTHY if is_complete else Exit.NO_ACCESS

    return inputs.guarded(act, exit_zero=False)
