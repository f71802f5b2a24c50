"""`maestro trace logs`: collect the logs of pods, print queries for log services, say what logs cover."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from pymaestro.cli import trace_inputs
from pymaestro.trace.exits import Exit

app = App(
    name="logs",
    help="Collect logs, query them from a log service, see what they cover.",
    help_format="plaintext",
    version_flags=[],
)


@app.command(name="check")
def check(
    *paths: Annotated[str, Parameter(allow_leading_hyphen=True)],
    output: Annotated[Literal["text", "json"], Parameter(name=("-o", "--output"))] = "text",
) -> int:
    """Say which pods, times, generations and verbosities these files hold."""

    def act() -> int:
        from pymaestro.cli import trace_reports

        found, rest = trace_inputs.separated(paths, trace_inputs.NO_LOGS, environ=os.environ)
        if rest:
            raise trace_inputs.not_there(rest[0])
        return trace_reports.check(found, output=output)

    return trace_inputs.guarded(act, exit_zero=False)


@app.command(name="kql")
def kql(
    *identifiers: str,
    since: Annotated[str, Parameter(name="--since")] = "2026-01-15T09:00:00Z",
    until: Annotated[str, Parameter(name="--until")] = "2026-01-15T09:10:00Z",
    table: Literal["containerLogs", "kubesystem"] = "containerLogs",
    subject: Annotated[Literal["server", "agent", "events", "all"], Parameter(name="--for")] = "all",
) -> int:
    """Print Kusto queries whose CSV exports `maestro trace` reads.

    Parameters
    ----------
    identifiers
        Resource IDs or op-ids to narrow the result to.
    since
        Begin of the window; keep it short.
    until
        End of the window.
    table
        containerLogs (today's tables) or kubesystem (the older ones).
    subject
        server, agent, events (of older agents), or all.
    """
    from pymaestro.trace.request.kql import Window, query

    def act() -> int:
        trace_inputs.moment(since, option="--since")
        trace_inputs.moment(until, option="--until")
        window = Window(start=since, end=until, identifiers=identifiers)
        subjects = ("server", "agent", "events") if subject == "all" else (subject,)
        sys.stdout.write("\n".join(f"// {each}\n{query(table, each, window)}" for each in subjects))
        return Exit.HEALTHY

    return trace_inputs.guarded(act, exit_zero=False)


@app.command(name="collect")
def collect(  # noqa: PLR0913 - each is a flag of the command line
    *,
    out: Annotated[Path, Parameter(name="--out")] = Path("maestro-logs"),
    since: str = "",
    server_kubeconfig: str = "",
    server_context: str = "",
    server_namespace: str = "maestro",
    server_label: str = "app=maestro",
    agent_kubeconfig: str = "",
    agent_context: str = "",
    agent_namespace: str = "maestro",
    agent_label: str = "app=maestro-agent",
    only: Literal["both", "server", "agent"] = "both",
) -> int:
    """Dump the logs of all server and agent pods, current and previous, with kubectl.

    Parameters
    ----------
    out
        The directory to write to.
    since
        Only records newer than this, such as 30m.
    only
        One of the two components.
    """
    import asyncio

    from pymaestro.trace.request.collect import Collected, Place
    from pymaestro.trace.request.collect import collect as fetch

    places = {
        "server": Place(name="server", kubeconfig=server_kubeconfig, context=server_context,
                        namespace=server_namespace, label=server_label),
        "agent": Place(name="agent", kubeconfig=agent_kubeconfig, context=agent_context,
                       namespace=agent_namespace, label=agent_label),
    }  # fmt: skip

    async def both() -> list[Collected]:
        wanted = [place for name, place in places.items() if only in ("both", name)]
        return list(await asyncio.gather(*(fetch(place, out, since=since) for place in wanted)))

    def act() -> int:
        results = asyncio.run(both())
        for each in results:
            sys.stdout.write("".join(f"{path}\n" for path in each.files))
            sys.stderr.write("".join(f"Warning: {problem}\n" for problem in each.problems))
        sys.stdout.write(f"Next: maestro trace requests {out}\n")
        return Exit.HEALTHY if all(each.files for each in results) else Exit.NO_ACCESS

    return trace_inputs.guarded(act, exit_zero=False)
