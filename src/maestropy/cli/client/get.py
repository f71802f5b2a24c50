"""`maestro get`: show works or consumers, as `kubectl get` does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cyclopts import App

from maestropy.cli import screen
from maestropy.cli.client import consumer, listing, row_watch
from maestropy.cli.client import output as rendering
from maestropy.cli.client.actions import Key
from maestropy.cli.client.bundles import reads, steps
from maestropy.cli.client.bundles.reads import BundleKey, Scope
from maestropy.cli.client.connection import GrpcFlags, RestFlags, open_client
from maestropy.cli.client.formats import TABLE, Format, OutputFlag
from maestropy.cli.client.listing import ListFlags
from maestropy.cli.errors import UsageError
from maestropy.cli.examples import epilogue

if TYPE_CHECKING:
    from maestropy.cli.client.output import Columns, Row
    from maestropy.sdk.blocking import Maestro

_LIST = "ResourceBundleList"

app = App(
    name="get",
    help="Show works or consumers: all, some by label, or some by name.",
    help_epilogue=epilogue(
        "maestro get works",
        "maestro get works cluster1/hello -o yaml",
        "maestro get works --consumer cluster1 -l app=web --watch",
        "maestro get consumers -o jsonpath='{.items[*].name}'",
    ),
    help_format="plaintext",
    version_flags=[],
)


@app.command(
    help_epilogue=epilogue(
        "maestro get works",
        "maestro get works cluster1/hello cluster2/hello",
        "maestro get works cluster1/hello -o yaml",
        "maestro get works --consumer cluster1 -l app=web --watch",
    )
)
def works(
    *keys: BundleKey,
    flags: ListFlags | None = None,
    scope: Scope | None = None,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Show works (resource bundles) of all sources, or those with these IDs or names."""
    with open_client(rest, grpc) as client:
        if not keys:
            reads.show_list(client, flags or ListFlags(), scope=scope or Scope(), output=output)
            return 0
        _reject_filters(flags, scope)
        items = [steps.get(client, key) for key in keys]
        if flags and flags.watch:
            ids = [str(item["id"]) for item in items]
            row_watch.follow(
                lambda: listing.whole(_existing(client, ids), kind=_LIST),
                output=output,
                columns=rendering.BUNDLES,
                headers=not flags.no_headers,
            )
    _show(items, kind=_LIST, output=output, columns=rendering.BUNDLES, flags=flags)
    return 0


def _existing(client: "Maestro", ids: "Sequence[str]") -> "list[Row]":
    """Return those resource bundles that still exist."""
    return [bundle for bundle_id in ids if (bundle := steps.get_if_exists(client, bundle_id)) is not None]


@app.command(
    help_epilogue=epilogue(
        "maestro get consumers",
        "maestro get consumers cluster1 -o yaml",
        "maestro get consumers -l region=us-east --no-headers",
    )
)
def consumers(
    *keys: Key,
    flags: ListFlags | None = None,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Show consumers, or those with these IDs or names."""
    with open_client(rest) as client:
        if not keys:
            consumer.show_list(client, flags or ListFlags(), output=output)
            return 0
        _reject_filters(flags, None)
        if flags and flags.watch:
            raise UsageError("--watch shows all consumers; leave out the names")
        items = [consumer.read(client, key) for key in keys]
    _show(items, kind="ConsumerList", output=output, columns=rendering.CONSUMERS, flags=flags)
    return 0


def _reject_filters(flags: ListFlags | None, scope: Scope | None) -> None:
    """Raise UsageError if objects are both named and filtered."""
    used = flags is not None and any((flags.selector, flags.search, flags.all))
    if used or (scope is not None and any((scope.consumer, scope.source, scope.continue_token))):
        raise UsageError(
            "names cannot be combined with --all, --search, --selector, --consumer, --source or --continue"
        )


def _show(items: "Sequence[Row]", *, kind: str, output: Format, columns: "Columns", flags: ListFlags | None) -> None:
    """Print one object as it is, several as a list; a table always has one row for each."""
    headers = not (flags and flags.no_headers)
    if len(items) == 1 and not output.is_table and output.kind != "custom-columns":
        screen.write(rendering.single(items[0], output=output, fields=lambda _: ()))
        return
    result: dict[str, Any] = listing.whole(items, kind=kind)
    screen.write(rendering.listing(result, output=output, columns=columns, headers=headers))
