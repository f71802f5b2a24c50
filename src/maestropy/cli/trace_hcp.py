"""`maestro trace hcp`: from an Azure resource ID to the pod that blocks it, in one command."""

import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import running
from maestropy.cli.trace_hcp_options import EntryOptions, ReachOptions, ReportOptions
from maestropy.trace.errors import BadQuestion, NoAccess, TraceError, Unreadable
from maestropy.trace.exits import Exit

if TYPE_CHECKING:
    from maestropy.trace.hcp.identity import Known
    from maestropy.trace.hcp.model import Walk
    from maestropy.trace.hcp.walk import Answerer

EXAMPLES = """\
Examples:

  maestro trace hcp "$RESOURCE_ID" --svc-context svc --mgmt-kubeconfig ~/.kube/config
      the whole walk; port-forwards are opened and closed for it

  maestro trace hcp "$RESOURCE_ID" --frontend-url http://localhost:8443 --cs-url http://localhost:8001
      with port-forwards of yours; what is not given is unknown, and the walk goes on

  maestro trace hcp 2ppsfca8u7368uin9koq9aq1b183mqke --offline ./documents --details hosted-cluster
      from documents somebody saved, by the Clusters Service id

  maestro trace hcp "$RESOURCE_ID" ... --save ./case-17 -o html --out case-17.html
      keep everything for a colleague, without secrets

  maestro trace hcp bundles ID ...     a single query: frontend, cs, shard, bundles, works, hostedcluster

Exit codes: 0 healthy, 1 problem, 2 usage, 3 unreadable input, 4 not found, 5 no access, 6 inconclusive, 7 ambiguous."""

app = App(
    name="hcp",
    help="From an Azure resource ID to the pod that blocks it: every hop of a hosted control plane, and a verdict.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)
_EXITS = {BadQuestion: Exit.USAGE, Unreadable: Exit.UNREADABLE, NoAccess: Exit.NO_ACCESS}
_SINGLE = {
    "frontend": (("clusters-service", "frontend"), ("frontend",)),
    "cs": (("clusters-service",), ("clusters-service",)),
    "shard": (("clusters-service", "shard"), ("shard",)),
    "bundles": (("clusters-service", "maestro"), ("maestro",)),
    "works": (("clusters-service", "shard", "works"), ("works",)),
    "hostedcluster": (
        ("clusters-service", "shard", "maestro", "works", "hosted-cluster", "control-plane", "node-pools"),
        ("hosted-cluster", "control-plane", "node-pools"),
    ),
}
"""For each single query: the hops that are walked for it, and those that are shown."""

Identifier = Annotated[
    str,
    Parameter(
        show_default=False,
        help="ARM resource ID, Clusters Service id or href, bundle id, namespace, or HostedCluster NAMESPACE/NAME.",
    ),
]


@app.default
def act(
    identifier: Identifier = "",
    *,
    entry: EntryOptions = EntryOptions(),  # noqa: B008 - frozen
    reach: ReachOptions = ReachOptions(),  # noqa: B008 - frozen
    report: ReportOptions = ReportOptions(),  # noqa: B008 - frozen
) -> int:
    """Walk along an HCP."""
    return _guarded(identifier, entry, reach=reach, report=report, single="")


def _add_single(name: str, text: str) -> None:
    @app.command(name=name, help=text)
    def command(
        identifier: Identifier = "",
        *,
        entry: EntryOptions = EntryOptions(),  # noqa: B008 - frozen
        reach: ReachOptions = ReachOptions(),  # noqa: B008 - frozen
        report: ReportOptions = ReportOptions(),  # noqa: B008 - frozen
    ) -> int:
        return _guarded(identifier, entry, reach=reach, report=report, single=name)


for _name, _text in (
    ("frontend", "What ARM is told about an HCP."),
    ("cs", "The cluster in Clusters Service: state, errors, checks."),
    ("shard", "The provision shard, and the management cluster it means."),
    ("bundles", "The bundles in Maestro, and what they bring back, unwrapped."),
    ("works", "The ManifestWorks on the management cluster, and what is inside."),
    ("hostedcluster", "The HostedCluster, its pods and its NodePools."),
):
    _add_single(_name, _text)


@app.command
def practice(
    scenario: Annotated[str, Parameter(help="healthy, etcd, undelivered, deletion or contradiction.")] = "etcd",
    *,
    folder: Annotated[Path | None, Parameter(help="Where everything is kept. [a temporary directory]")] = None,
) -> int:
    """Run a fleet to practise on, until Ctrl-C: an HCP in a chosen state, and the command that walks along it."""
    from maestropy.sandbox.hcp.cast import SCENARIOS

    if scenario not in SCENARIOS:
        sys.stderr.write(f"Error: there is no scenario {scenario!r}; there are {', '.join(SCENARIOS)}\n")
        return int(Exit.USAGE)
    return running.run(lambda stop: _practise(scenario, folder=folder, stop=stop))


async def _practise(scenario: str, *, folder: Path | None, stop: running.Stop) -> int:
    import shlex
    import tempfile

    from maestropy.sandbox.hcp.cast import SCENARIOS
    from maestropy.sandbox.hcp.stage import stage

    sys.stderr.write("starting PostgreSQL, server, agent, management cluster, and stand-ins for the closed services\n")
    with tempfile.TemporaryDirectory(prefix="maestro-hcp-") as temporary:
        async with stage(folder or Path(temporary), SCENARIOS[scenario]) as started:
            command = f"maestro trace hcp {shlex.join(started.arguments)}"
            sys.stdout.write(
                f"Find out what is wrong, in another terminal:\n\n  {command}\n\nCtrl-C stops everything.\n"
            )
            sys.stdout.flush()
            await stop.wait()
    return 0


def _guarded(identifier: str, entry: EntryOptions, *, reach: ReachOptions, report: ReportOptions, single: str) -> int:
    try:
        known = _known(identifier, entry)
        if report.watch and reach.offline is not None:
            raise BadQuestion("--watch needs somebody to ask; documents of --offline do not change")
        code = running.run(lambda stop: _walk(known, reach=reach, report=report, single=single, stop=stop))
    except TraceError as error:
        sys.stderr.write(f"Error: {error}\n")
        return int(next(code for kind, code in _EXITS.items() if isinstance(error, kind)))
    return 0 if report.exit_zero and code != Exit.INTERRUPTED else code


def _known(identifier: str, entry: EntryOptions) -> "Known":
    from dataclasses import replace

    from maestropy.trace.hcp import identity

    parts = (entry.subscription, entry.group, entry.name)
    if bool(identifier) == any(parts):
        raise BadQuestion(
            f"give IDENTIFIER, or --subscription, --group and --name; IDENTIFIER is {identity.UNDERSTOOD}"
        )
    if any(parts) and not all(parts):
        raise BadQuestion("--subscription, --group and --name belong together; give all three")
    given = identifier or str(identity.ArmId(subscription=parts[0], group=parts[1], name=parts[2]))
    return replace(identity.parse(given), operation=entry.operation)


async def _walk(known: "Known", *, reach: ReachOptions, report: ReportOptions, single: str, stop: running.Stop) -> int:
    import asyncio

    from maestropy.aio.clock import Clock
    from maestropy.trace.hcp import saving, walk
    from maestropy.trace.hcp.question import Taken

    clock = Clock()
    hops = [each for each in walk.HOPS if each.name in _walked(known, single, all_hops=[hop.name for hop in walk.HOPS])]
    _check_details(report.details, [each.name for each in hops])
    shown: object = None
    while True:
        # Opened anew for every walk: a port-forward that died in between must not make the rest unknown.
        async with AsyncExitStack() as stack:
            answerer, source, saved_at = await _answerer(reach, stack)
            now = _moment(reach.at) or saved_at or clock.now()
            taken = Taken(now=now, source=source, is_offline=reach.offline is not None)
            found = await walk.run(known, answerer=answerer, taken=taken, hops=hops)
        if report.save is not None:
            saving.write(found, report.save)
        # Ages change all the time; only a hop that changed is news.
        state = [(each.name, each.state, each.code, each.waits) for each in found.hops]
        if state != shown:
            _write(_rendered(found, report, single=single), report.out)
            shown = state
        code = _single_exit(found, single) if single else found.verdict.exit
        if not report.watch or code is Exit.HEALTHY or stop.is_asked:
            return int(code)
        try:
            async with asyncio.timeout(report.interval):
                await stop.wait()
        except TimeoutError:
            continue
        return int(code)


def _walked(known: "Known", single: str, *, all_hops: Sequence[str]) -> Sequence[str]:
    """Return the hops to walk: for a single query only those that are needed to find it."""
    if not single:
        return all_hops
    return ("frontend",) if single == "frontend" and known.arm else _SINGLE[single][0]


def _single_exit(found: "Walk", single: str) -> Exit:
    """Judge a single query by what it shows, not by the whole HCP."""
    states = {each.state.value for each in found.hops if each.name in _SINGLE[single][1]}
    if states & {"bad", "behind"}:
        return Exit.PROBLEM
    return Exit.INCONCLUSIVE if "unknown" in states else Exit.HEALTHY


async def _answerer(reach: ReachOptions, stack: AsyncExitStack) -> "tuple[Answerer, str, datetime | None]":
    if reach.offline is not None:
        from maestropy.trace.hcp import offline

        library = offline.read(reach.offline)
        for each in library.unreadable:
            sys.stderr.write(f"Warning: {each}\n")
        return library, str(reach.offline), library.taken_at
    import os

    from maestropy.trace.access import choosing, hcp
    from maestropy.trace.hcp.question import Place

    given = {
        Place.FRONTEND: reach.frontend_url,
        Place.CLUSTERS_SERVICE: reach.cs_url,
        Place.MAESTRO: reach.maestro_url,
    }
    wanted = hcp.Reach(
        urls={place: _address(url) for place, url in given.items() if url},
        svc_kubeconfig=reach.svc_kubeconfig,
        svc_context=reach.svc_context,
        mgmt_kubeconfig=reach.mgmt_kubeconfig,
        mgmt_context=reach.mgmt_context,
        api_version=reach.api_version,
        timeout_seconds=reach.timeout,
    )
    place = choosing.Place(environ=os.environ, home=Path.home())
    return await stack.enter_async_context(hcp.Live(wanted, place=place)), wanted.source, None


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise BadQuestion(f"{url!r} is no address; write it as http://host:port")
    return url


def _moment(written: str) -> datetime | None:
    from maestropy.trace.hcp import reading

    found = reading.parse_moment(written)
    if written and found is None:
        raise BadQuestion(f"--at {written!r} is no time; write it as 2006-01-02T15:04:05Z")
    return found


def _check_details(wanted: Sequence[str], names: Sequence[str]) -> None:
    for each in wanted:
        if each not in names:
            raise BadQuestion(f"--details {each}: there is no such hop; there are {', '.join(names)}")


def _rendered(found: "Walk", report: ReportOptions, *, single: str) -> str:
    from maestropy import __version__
    from maestropy.trace.hcp import picture, render
    from maestropy.trace.output import envelope, json_text, yaml_text

    match report.output:
        case "json" | "yaml" as form:
            moment = f"{found.scene.taken.now:%Y-%m-%dT%H:%M:%SZ}"
            exit_code = int(found.verdict.exit)
            body = envelope(version=__version__, generated_at=moment, exit_code=exit_code, body=render.model(found))
            return json_text(body) if form == "json" else yaml_text(body)
        case "md":
            return render.markdown(found)
        case "html":
            return picture.page(found)
        case "mermaid":
            return picture.mermaid(found)
        case form:
            if single:
                return render.single(found, _SINGLE[single][1])
            return render.text(found, details=[each.name for each in found.hops] if form == "wide" else report.details)


def _write(text: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unreadable(f"--out {path} cannot be written ({error.strerror})") from error
