"""Read lists for `list` and `get`: flags, pages, and what a list leaves out."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from cyclopts import Parameter, validators

from maestropy.cli import screen
from maestropy.cli.client import output as rendering
from maestropy.cli.client import row_watch
from maestropy.cli.client.formats import Format, NoHeaders
from maestropy.cli.errors import CommandError, UsageError
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro

_AT_LEAST_ONE = validators.Number(gte=1)
_SIZE = 100
_LONG_LIST = 10_000


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ListFlags:
    """Which objects a list shows, and how."""

    page: Annotated[int, Parameter(help="The page of the list.", validator=_AT_LEAST_ONE)] = 1
    size: Annotated[
        int,
        Parameter(help="The number of items per page; --all and --selector show all.", validator=_AT_LEAST_ONE),
    ] = _SIZE
    all: Annotated[bool, Parameter(name=("-A", "--all"), help="Show all, not only one page.", negative=())] = False
    search: Annotated[
        str, Parameter(help="A search (docs/search.md): \"created_at > '2026-11-01'\".", show_default=False)
    ] = ""
    selector: Annotated[
        str, Parameter(name=("-l", "--selector"), help="Only those with these labels: app=web,!canary.")
    ] = ""
    watch: Annotated[
        bool,
        Parameter(name=("-w", "--watch"), help="Go on, and print what changes, until interrupted.", negative=()),
    ] = False
    no_headers: NoHeaders = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The objects of one kind, as `list` needs them."""

    kind: str
    """The kind of a list of them."""
    page: Callable[[int, int], Mapping[str, Any]]
    """Returns one page, by number and size."""
    every: Callable[[], Iterable[Mapping[str, Any]]]
    """Yields all of them."""

    def read(self, flags: ListFlags) -> Mapping[str, Any]:
        """Return the list that the flags ask for, in the form of the REST API."""
        if not (flags.all or flags.selector or flags.watch):
            return self.page(flags.page, flags.size)
        return whole(list(self.every()), kind=self.kind)


def whole(items: Sequence[Mapping[str, Any]], *, kind: str) -> dict[str, Any]:
    """Return all objects of a list in the form of the REST API."""
    return {"items": list(items), "kind": kind, "page": 1, "size": len(items), "total": len(items)}


def rest_of(result: Mapping[str, Any], flags: ListFlags) -> str:
    """Return what to tell about items behind this page; empty if there are none."""
    shown, total = len(result.get("items") or ()), int(result.get("total") or 0)
    page = int(result.get("page") or flags.page)
    if flags.all or flags.selector or total <= page * flags.size:
        return ""
    about = "about " if result.get("total_is_estimate") else ""
    # The number of a deep page costs the server as much as all pages before it.
    is_long = total > _LONG_LIST and result.get("continue")
    following = f"--continue {result['continue']}" if is_long else f"--page {page + 1}"
    return f"Showing {shown} of {about}{total}; --all shows all, {following} the next page\n"


def check(flags: ListFlags) -> None:
    """Raise UsageError for a page of what is shown as a whole."""
    if flags.page > 1 and (flags.all or flags.selector or flags.watch):
        raise UsageError("--page shows one page, and --all, --selector and --watch show all; leave out one of them")


def show(
    collection: Collection,
    flags: ListFlags,
    *,
    output: Format,
    columns: rendering.Columns,
    before_empty: Callable[[], None] = lambda: None,
) -> None:
    """Print a list, and with `--watch` its changes until interrupted; `before_empty` may reject an empty one."""
    if flags.watch:
        follow(collection, flags, output=output, columns=columns)
    if output.kind == "name" and (flags.all or flags.selector):
        _write_names(collection.every(), before_empty=before_empty)
        return
    result = collection.read(flags)
    if not result.get("items"):
        before_empty()
    screen.write(rendering.listing(result, output=output, columns=columns, headers=not flags.no_headers))
    screen.write_error(rest_of(result, flags))


def _write_names(items: Iterable[Mapping[str, Any]], *, before_empty: Callable[[], None]) -> None:
    """Print the IDs of a list as they are read; other formats need the whole list, for their columns or brackets."""
    count = 0
    for item in items:
        screen.write(rendering.name_line(item))
        count += 1
        if count % _SIZE == 0:
            sys.stdout.flush()
    if not count:
        before_empty()


def follow(collection: Collection, flags: ListFlags, *, output: Format, columns: rendering.Columns) -> NoReturn:
    """Print a list and its changes, until interrupted."""
    row_watch.follow(lambda: collection.read(flags), output=output, columns=columns, headers=not flags.no_headers)


def known_consumer(client: "Maestro", name: str) -> None:
    """Raise CommandError, with similar names, if there is no such consumer."""
    import difflib

    from maestropy.sdk import errors

    try:
        client.consumers.get(name)
    except errors.NotFound:
        names = [consumer.name for consumer in client.consumers.list()]
        similar = difflib.get_close_matches(name, names, n=3)
        advice = f"did you mean {' or '.join(similar)}?" if similar else "see `maestro consumer list`"
        raise CommandError(printable.escape(f"there is no consumer {name!r}; {advice}")) from None
