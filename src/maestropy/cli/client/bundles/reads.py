"""Commands of `maestro resourcebundle` that read: list, get, status, describe and watch."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from maestropy.cli import lifecycle, screen
from maestropy.cli.client import listing, row_watch
from maestropy.cli.client import output as rendering
from maestropy.cli.client.bundles import full_reads, steps
from maestropy.cli.client.connection import GrpcFlags, RestFlags, open_client
from maestropy.cli.client.formats import TABLE, Format, OutputFlag
from maestropy.cli.client.listing import ListFlags
from maestropy.cli.errors import UsageError
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.errors import MaestroError
    from maestropy.sdk.watch_events import WatchEvent

BundleKey = Annotated[str, Parameter(help="The ID, or the name of a work: NAME or CONSUMER/NAME.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The consumer and the source of resource bundles."""

    consumer: Annotated[str, Parameter(help="Only those of this consumer.")] = ""
    source: Annotated[str, Parameter(help="Only those of this source ID.")] = ""
    continue_token: Annotated[
        str,
        Parameter(name="--continue", help="The next page of a long list: the token that the page before ended with."),
    ] = ""


def list_(
    *,
    flags: ListFlags | None = None,
    scope: Scope | None = None,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """List the resource bundles of all sources."""
    with open_client(rest, grpc) as client:
        show_list(client, flags or ListFlags(), scope=scope or Scope(), output=output)
    return 0


def show_list(client: "Maestro", flags: ListFlags, *, scope: Scope, output: Format) -> None:
    """Print resource bundles; a consumer that does not exist is an error, not an empty list."""
    listing.check(flags)
    bundles, consumer, source = client.resource_bundles, scope.consumer, scope.source
    if scope.continue_token and (flags.all or flags.selector or flags.watch or flags.page > 1):
        raise UsageError("--continue shows one page; leave out --all, --selector, --watch and --page")
    reads_all = full_reads.is_needed(flags.selector, narrowed=bool(consumer or source or flags.search))
    if reads_all:
        full_reads.notify(flags.selector)
    # Rows that are printed as they are read would stand between the numbers.
    shows_progress = (
        screen.can_draw(sys.stderr) and not flags.watch and not (output.kind == "name" and sys.stdout.isatty())
    )

    def every() -> Iterable[Mapping[str, Any]]:
        if not reads_all:
            return bundles.list(labels=flags.selector or None, search=flags.search, consumer=consumer, source=source)
        found = bundles.list(search=full_reads.search(flags.selector))
        return full_reads.matching(found, flags.selector, shows_progress=shows_progress)

    collection = listing.Collection(
        kind="ResourceBundleList",
        page=lambda page, size: bundles.page(
            page=scope.continue_token or page, size=size, search=flags.search, consumer=consumer, source=source
        ),
        every=every,
    )
    if flags.watch and consumer:
        listing.known_consumer(client, consumer)

    def check_consumer() -> None:
        if consumer:
            listing.known_consumer(client, consumer)

    listing.show(collection, flags, output=output, columns=rendering.BUNDLES, before_empty=check_consumer)


def get(
    key: BundleKey,
    /,
    *,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Show one resource bundle."""
    with open_client(rest, grpc) as client:
        bundle = steps.get(client, key)
    screen.write(rendering.single(bundle, output=output, fields=rendering.bundle_fields))
    return 0


def status(
    key: BundleKey,
    /,
    *,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Show the status of a resource bundle."""
    with open_client(rest, grpc) as client:
        bundle = steps.get(client, key)
    bundle_status = bundle.get("status") or {}
    if output.is_table:
        screen.write(steps.sentence(bundle) + rendering.table(steps.condition_lines(bundle)))
    else:
        screen.write(rendering.single({"id": bundle["id"], **bundle_status}, output=output, fields=lambda _: ()))
    return 0


def describe(key: BundleKey, /, *, rest: RestFlags | None = None) -> int:
    """Show all details of a resource bundle, its state first."""
    with open_client(rest) as client:
        bundle = steps.get(client, key)
    feedback = [
        [f"{manifest.kind}/{manifest.name}", name, json.dumps(value, ensure_ascii=False)]
        for manifest in steps.work(bundle).leaves()
        for name, value in manifest.feedback.items()
    ]
    sections = [
        steps.sentence(bundle),
        rendering.single(bundle, output=TABLE, fields=rendering.bundle_fields),
    ]
    sections += ["\nConditions\n", rendering.table(steps.condition_lines(bundle))]
    if feedback:
        sections += ["\nFeedback\n", rendering.table([["MANIFEST", "NAME", "VALUE"], *feedback])]
    screen.write("".join(sections))
    return 0


def watch(
    *,
    consumer: Annotated[str, Parameter(help="Only works of this consumer.")] = "",
    selector: Annotated[str, Parameter(name=("-l", "--selector"), help="Only works with these labels.")] = "",
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Watch the works of the source ID, across reconnects, until interrupted.

    Standard error says when the server is gone and when it is back. `list --watch` shows the works of all sources.
    """
    lifecycle.exit_when_output_closes()
    with open_client(rest, grpc) as client:
        if consumer:
            listing.known_consumer(client, consumer)
        works = client.works(consumer or None)
        with works.watch(labels=selector or None, on_connection=_report_connection) as events:
            for event in events:
                screen.write(f"{_event_line(event, output)}\n")
                sys.stdout.flush()
    return 0


def _report_connection(error: "MaestroError | None") -> None:
    if error is None:
        row_watch.report_back()
    else:
        row_watch.report_gone(error.reason)


def _event_line(event: "WatchEvent", output: Format) -> str:
    work = event.work
    document: dict[str, Any] = {"type": str(event.type), "object": work.to_dict()}
    match output.kind:
        case "json":
            return printable.json_ascii(json.dumps(document, ensure_ascii=False))
        case "yaml":
            return "---\n" + rendering.as_yaml(document).rstrip()
        case "name":
            return printable.escape(work.id)
        case "jsonpath" | "custom-columns":
            lines = rendering.single(document, output=output, fields=lambda _: ()).splitlines()
            return "\n".join(lines[1 if output.kind == "custom-columns" else 0 :])
        case "table" | "wide":
            conditions = ",".join(f"{condition.type}={condition.status}" for condition in work.conditions) or "-"
            return printable.escape(
                f"{event.type:<9} {work.id} {work.consumer}/{work.name} version {work.version} {conditions}"
            )
