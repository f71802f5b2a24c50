"""`maestro trace hcp`: trace a hosted control plane from its Azure resource ID to the pod that blocks it."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import lifecycle, screen
from maestropy.cli.trace import endings, seconds
from maestropy.cli.trace.hcp.options import HcpAccessOptions, HcpEntryOptions, HcpReportOptions
from maestropy.trace.access.options import HcpAccess
from maestropy.trace.errors import InvalidArguments, TraceError
from maestropy.trace.exit_codes import Exit

if TYPE_CHECKING:
    from maestropy.trace.hcp.identity import KnownIds
    from maestropy.trace.hcp.model import Walk

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

  maestro trace hcp bundles ID ...     a single query: frontend, cs, shard, bundles, works, hostedcluster,
                                       managedcluster

  maestro trace hcp "$RESOURCE_ID" --env prod
      with the clusters and addresses of an environment of `maestro config`

Exit codes: 0 healthy, 1 problem, 2 usage, 3 unreadable input, 4 not found, 5 no access, 6 inconclusive, 7 ambiguous."""

app = App(
    name="hcp",
    help="Trace a hosted control plane from its Azure resource ID to the pod that blocks it.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)
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
    "managedcluster": (("clusters-service", "shard", "managed-cluster"), ("managed-cluster",)),
}
"""For each single query: the hops it needs, and the hops it shows."""

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
    entry: HcpEntryOptions = HcpEntryOptions(),  # noqa: B008 - frozen
    access: HcpAccessOptions = HcpAccessOptions(),  # noqa: B008 - frozen
    report: HcpReportOptions = HcpReportOptions(),  # noqa: B008 - frozen
) -> int:
    """Trace a hosted control plane."""
    return _guarded(identifier, entry, access=access, report=report, single="")


def _add_single(name: str, text: str) -> None:
    @app.command(name=name, help=text)
    def command(
        identifier: Identifier = "",
        *,
        entry: HcpEntryOptions = HcpEntryOptions(),  # noqa: B008 - frozen
        access: HcpAccessOptions = HcpAccessOptions(),  # noqa: B008 - frozen
        report: HcpReportOptions = HcpReportOptions(),  # noqa: B008 - frozen
    ) -> int:
        return _guarded(identifier, entry, access=access, report=report, single=name)


for _name, _text in (
    ("frontend", "Show what ARM reports about an HCP."),
    ("cs", "Show the cluster in Clusters Service: state, errors, checks."),
    ("shard", "Show the provision shard and its management cluster."),
    ("bundles", "Show the bundles in Maestro and their status feedback."),
    ("works", "Show the ManifestWorks on the management cluster and their contents."),
    ("hostedcluster", "Show the HostedCluster, its pods and its NodePools."),
    ("managedcluster", "Show the ManagedCluster of ACM: accepted, joined, available."),
):
    _add_single(_name, _text)


@app.command
def practice(
    scenario: Annotated[str, Parameter(help="healthy, etcd, undelivered, deletion or contradiction.")] = "etcd",
    *,
    folder: Annotated[Path | None, Parameter(help="The directory for all files. [a temporary directory]")] = None,
) -> int:
    """Run a practice fleet until Ctrl-C: an HCP in a chosen state, and the command that traces it."""
    from maestropy.sandbox.hcp.documents import SCENARIOS

    if scenario not in SCENARIOS:
        screen.write_error(f"Error: there is no scenario {scenario!r}; there are {', '.join(SCENARIOS)}\n")
        return int(Exit.USAGE)
    return lifecycle.run(lambda stop: _practise(scenario, folder=folder, stop=stop))


async def _practise(scenario: str, *, folder: Path | None, stop: lifecycle.Stop) -> int:
    import shlex
    import tempfile

    from maestropy.sandbox.hcp.documents import SCENARIOS
    from maestropy.sandbox.hcp.practice_fleet import practice_fleet

    screen.write_error(
        "starting PostgreSQL, server, agent, management cluster, and stand-ins for the closed services\n"
    )
    with tempfile.TemporaryDirectory(prefix="maestro-hcp-") as temporary:
        async with practice_fleet(folder or Path(temporary), SCENARIOS[scenario]) as started:
            screen.write(
                "Find out what is wrong, in another terminal:\n\n"
                f"  maestro trace hcp {shlex.join(started.arguments)}\n\n"
                "The same with addresses instead of port-forwards:\n\n"
                f"  maestro trace hcp {shlex.join(started.url_arguments)}\n\n"
                "Ctrl-C stops everything.\n"
            )
            sys.stdout.flush()
            await stop.wait()
    return 0


def _guarded(
    identifier: str, entry: HcpEntryOptions, *, access: HcpAccessOptions, report: HcpReportOptions, single: str
) -> int:
    from maestropy.trace.hcp.model import ALL_HOPS

    try:
        request = _request(identifier, entry, access=access, single=single)
        _check_details(report.details, request.hop_names or ALL_HOPS)
        seconds.checked(report.interval, option="--interval")
        if report.watch and access.offline is not None:
            raise InvalidArguments("--watch needs live systems; documents of --offline do not change")
        code = lifecycle.run(lambda stop: _walk(request, report=report, single=single, stop=stop))
    except TraceError as error:
        return endings.failed(error)
    return 0 if report.exit_zero and code != Exit.INTERRUPTED else code


@dataclass(frozen=True, slots=True, kw_only=True)
class _WalkRequest:
    """What the flags ask for."""

    identifier: str
    operation: str
    access: HcpAccess
    at: datetime | None
    hop_names: Sequence[str]


def _request(identifier: str, entry: HcpEntryOptions, *, access: HcpAccessOptions, single: str) -> _WalkRequest:
    from maestropy.cli.trace import environment
    from maestropy.trace.hcp import identity

    parts = (entry.subscription, entry.group, entry.name)
    if bool(identifier) == any(parts):
        raise InvalidArguments(
            f"give IDENTIFIER, or --subscription, --group and --name; IDENTIFIER is {identity.ACCEPTED_FORMS}"
        )
    if any(parts) and not all(parts):
        raise InvalidArguments("--subscription, --group and --name belong together; give all three")
    text = identifier or str(identity.ArmId(subscription=parts[0], group=parts[1], name=parts[2]))
    choice = environment.EnvironmentChoice(env=access.env, config=access.config)
    return _WalkRequest(
        identifier=text,
        operation=entry.operation,
        access=environment.complete_hcp_access(access.access, choice, os.environ),
        at=_moment(access.at),
        hop_names=_walked(identity.parse(text), single),
    )


async def _walk(request: _WalkRequest, *, report: HcpReportOptions, single: str, stop: lifecycle.Stop) -> int:
    import asyncio

    from maestropy.trace import library
    from maestropy.trace.hcp.documents import saved_documents

    if request.access.environment:
        screen.write_error(f"Environment {request.access.environment} of `maestro config`\n")
    shown: object = None
    while True:
        # Connected anew for every walk: a port-forward that died in between must not make the rest unknown.
        walk = await library.hcp(
            request.identifier,
            access=request.access,
            at=request.at,
            operation=request.operation,
            hop_names=request.hop_names,
        )
        screen.write_error("".join(f"Warning: {problem}\n" for problem in walk.context.snapshot.problems))
        if report.save is not None:
            saved_documents.write(walk, report.save)
        # Ages change all the time; only a changed hop is reported.
        state = [(hop.name, hop.state, hop.code, hop.waits) for hop in walk.hops]
        if state != shown:
            endings.write_report(_rendered(walk, report, single=single), report.out)
            shown = state
        code = _single_exit(walk, single) if single else walk.verdict.exit
        if not report.watch or code is Exit.HEALTHY or stop.is_requested:
            return int(code)
        try:
            async with asyncio.timeout(report.interval):
                await stop.wait()
        except TimeoutError:
            continue
        return int(code)


def _walked(known: "KnownIds", single: str) -> Sequence[str]:
    """Return the hops to walk: for a single query only those that it needs; empty for all."""
    if not single:
        return ()
    return ("frontend",) if single == "frontend" and known.arm else _SINGLE[single][0]


def _single_exit(walk: "Walk", single: str) -> Exit:
    """Judge a single query by what it shows, not by the whole HCP."""
    states = {hop.state.value for hop in walk.hops if hop.name in _SINGLE[single][1]}
    if states & {"bad", "behind"}:
        return Exit.PROBLEM
    return Exit.INCONCLUSIVE if "unknown" in states else Exit.HEALTHY


def _moment(written: str) -> datetime | None:
    from maestropy.trace.hcp import lookup

    moment = lookup.parse_moment(written)
    if written and moment is None:
        raise InvalidArguments(f"--at {written!r} is not a time; write it as 2006-01-02T15:04:05Z")
    return moment


def _check_details(requested: Sequence[str], names: Sequence[str]) -> None:
    for hop in requested:
        if hop not in names:
            raise InvalidArguments(f"--details {hop}: there is no such hop; there are {', '.join(names)}")


def _rendered(walk: "Walk", report: HcpReportOptions, *, single: str) -> str:
    from maestropy.trace.hcp.report import diagram, render
    from maestropy.trace.output import document_text

    match report.output:
        case "json" | "yaml" as form:
            moment = f"{walk.context.snapshot.now:%Y-%m-%dT%H:%M:%SZ}"
            exit_code = int(walk.verdict.exit)
            return document_text(render.model(walk), form=form, generated_at=moment, exit_code=exit_code)
        case "md":
            return render.markdown(walk)
        case "html":
            return diagram.page(walk)
        case "mermaid":
            return diagram.mermaid(walk)
        case form:
            if single:
                return render.single(walk, _SINGLE[single][1])
            return render.text(walk, details=[hop.name for hop in walk.hops] if form == "wide" else report.details)
