"""`maestro trace logs`: collect the logs of pods, print queries for log services, say what logs cover."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from maestropy.cli import trace_inputs, trace_pods
from maestropy.trace.errors import BadQuestion
from maestropy.trace.exits import Exit

app = App(
    name="logs",
    help="Collect logs, query them from a log service, see what they cover.",
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
    """Say which pods, times, generations and verbosities these files hold.

    Parameters
    ----------
    paths
        Files, directories, archives, or - for standard input.
    output
        A page to read, or the same for programs.
    """

    def act() -> int:
        from maestropy.cli import trace_reports

        given = trace_inputs.separated(paths, trace_inputs.NO_LOGS, environ=os.environ)
        if given.identifiers:
            raise trace_inputs.not_there(given.identifiers[0])
        return trace_reports.check(given.needed(), output=output)

    return trace_inputs.guarded(act, exit_zero=False)


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
        Begin of the window, a time or how long ago; keep it short. [10m]
    until
        End of the window. [now]
    table
        containerLogs (today's tables) or kubesystem (the older ones).
    subject
        server, agent, events (of older agents), or all.
    """
    from maestropy.aio.clock import Clock
    from maestropy.trace.request.document import stamp
    from maestropy.trace.request.kql import Window, query

    def act() -> int:
        now = Clock().epoch()
        start = trace_inputs.moment_or_age(since, option="--since", now=now)
        end = trace_inputs.moment_or_age(until, option="--until", now=now) if until else now
        if end <= start:
            raise BadQuestion("--until is not after --since; name a window of some minutes")
        window = Window(start=_seconds(stamp(start)), end=_seconds(stamp(end)), identifiers=identifiers)
        subjects = ("server", "agent", "events") if subject == "all" else (subject,)
        sys.stdout.write("\n".join(f"// {each}\n{query(table, each, window)}" for each in subjects))
        return Exit.HEALTHY

    return trace_inputs.guarded(act, exit_zero=False)


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
        The directory to write to. Default: maestro-logs, or what the variable logs_dir says.
    since
        Only records newer than this, such as 30m.
    """
    import asyncio

    def act() -> int:
        from maestropy.trace.access.collect import collect as fetch

        wanted = trace_pods.with_variables(pods, os.environ)
        # Whoever uses the variables of the older script finds the logs where it put them.
        usual = Path("maestro-logs") if wanted is pods else Path.home() / "maestro-logs"
        folder = out or Path(os.environ.get("logs_dir") or usual)  # noqa: SIM112 - as scripts spell it
        places = trace_pods.places(wanted, environ=os.environ, home=Path.home())
        age = trace_inputs.seconds(since, option="--since") if since else 0.0
        results = asyncio.run(fetch(places, folder, since_seconds=round(age)))
        for each in results:
            sys.stdout.write("".join(f"{path}\n" for path in each.files))
            sys.stderr.write("".join(f"Warning: {problem}\n" for problem in each.problems))
        if any(each.files for each in results):
            sys.stdout.write(f"Next: maestro trace requests {folder}\n")
        return Exit.HEALTHY if all(each.files for each in results) else Exit.NO_ACCESS

    return trace_inputs.guarded(act, exit_zero=False)
