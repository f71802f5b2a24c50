"""`maestro history`: show who changed a work or a consumer, what, when and from where."""

import heapq
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter, validators

from maestropy.aio import clock
from maestropy.cli import screen
from maestropy.cli.client import output as rendering
from maestropy.cli.client.bundles import steps
from maestropy.cli.client.connection import GrpcFlags, RestFlags, open_client
from maestropy.cli.client.formats import NoHeaders
from maestropy.cli.errors import CommandError, UsageError
from maestropy.cli.examples import epilogue
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.history import HistoryEntry

Output = Literal["table", "wide", "json", "yaml", "jsonl"]

_HEADS = ("TIME", "KIND", "CONSUMER", "WORK", "VERSION", "BY", "FROM", "WHAT", "OPERATION")
_NARROW = ("TIME", "KIND", "VERSION", "BY", "FROM", "WHAT")
_AGE = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SHOWN = 3
"""How many changes a row of a table names; `-o wide` names all."""

app = App(
    name="history",
    help="Show who changed a work or a consumer, what, when and from where.",
    help_epilogue=epilogue(
        "maestro history cluster1/hello",
        "maestro history 55c61e54-a3f6-563d-9fec-b1fe297bdfdb -o wide",
        "maestro history cluster1 --since 2h --kind agent,consumer",
        "maestro history cluster1/hello --kind work.updated --tail 10",
        "maestro history --all --since 24h -o jsonl > history.jsonl",
    ),
    help_format="plaintext",
    version_flags=[],
)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFlags:
    """Which entries are shown."""

    since: Annotated[str, Parameter(help="Only entries from this time on: 30m, 24h, 7d, or 2026-11-17T10:00:00Z.")] = ""
    until: Annotated[str, Parameter(help="Only entries before this time.")] = ""
    kind: Annotated[
        tuple[str, ...],
        Parameter(
            help="Only entries of these kinds, such as work.updated, or of all that begin so: work, agent, consumer, "
            "request, history; may be repeated.",
            negative=(),
        ),
    ] = ()
    tail: Annotated[
        int | None, Parameter(help="Only the newest entries, this many.", validator=validators.Number(gte=1))
    ] = None
    all: Annotated[
        bool, Parameter(name=("-A", "--all"), help="Everything, for export; it needs the role admin.", negative=())
    ] = False


@app.default
def history(
    key: Annotated[
        str, Parameter(help="A work (its ID or CONSUMER/NAME) or a consumer (its name or ID), also a deleted one.")
    ] = "",
    /,
    *,
    flags: HistoryFlags | None = None,
    output: Annotated[
        Output, Parameter(name=("-o", "--output"), help="table, wide, json, yaml, or jsonl: one entry a line.")
    ] = "table",
    no_headers: NoHeaders = False,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Show who changed a work or a consumer, what, when and from where."""
    flags = flags or HistoryFlags()
    if bool(key) == flags.all:
        raise UsageError("name a work or a consumer, or give --all; one of the two")
    filters = _filters(flags, now=clock.Clock().now())
    with open_client(rest, grpc) as client:
        entries = _find(client, key, filters)
        if output == "jsonl" and flags.tail is None:
            # Page by page: an export can be long.
            for entry in entries:
                screen.write(f"{_line(entry)}\n")
            return 0
        shown = list(entries)
    if flags.tail is not None:
        shown.reverse()
    if not shown:
        screen.write_error("No history found\n" if not _is_filtered(flags) else "No history matches\n")
    sys.stdout.write("".join(_rendered(shown, output=output, headers=not no_headers, is_everything=flags.all)))
    return 0


def _find(client: "Maestro", key: str, filters: Mapping[str, Any]) -> "Iterator[HistoryEntry]":
    """Return the entries of what `key` names: a work by ID, a consumer, or a work by name."""
    if not key:
        return client.history(**filters)
    from maestropy.sdk import errors

    if "/" in key:
        work_id = _work_id(client, key)
        try:
            return _started(client.resource_bundles.history(work_id, **filters))
        except errors.NotFound:
            raise CommandError(
                printable.escape(
                    f"there is no work {key}, and no history of one that source {client.settings.source} had (ID "
                    f"{work_id}); check the name, or give the source with --grpc-source-id"
                )
            ) from None
    # Both: a request that was refused may have named a work like a consumer, or the other way round.
    found = []
    for read in (client.consumers.history, client.resource_bundles.history):
        try:
            found.append(_started(read(key, **filters)))
        except errors.NotFound:
            continue
    if not found:
        return client.resource_bundles.history(_work_id(client, key), **filters)
    return _merged(found, filters)


def _merged(found: "list[Iterator[HistoryEntry]]", filters: Mapping[str, Any]) -> "Iterator[HistoryEntry]":
    """Return the entries of several histories in the order of time, each once."""
    entries = heapq.merge(*found, key=_position, reverse=filters["newest_first"])
    once = (next(same) for _, same in itertools.groupby(entries, key=lambda entry: entry.id))
    return itertools.islice(once, filters["limit"])


def _position(entry: "HistoryEntry") -> tuple[datetime, int]:
    return datetime.fromisoformat(entry.time), int(entry.id)


def _started(entries: "Iterator[HistoryEntry]") -> "Iterator[HistoryEntry]":
    """Return the entries after the first was read, so that what does not exist is known."""
    first = next(entries, None)

    def rest() -> "Iterator[HistoryEntry]":
        if first is not None:
            yield first
        yield from entries

    return rest()


def _work_id(client: "Maestro", key: str) -> str:
    """Return the ID of a work; that of a deleted one follows from consumer, name and our own source ID."""
    try:
        return str(steps.get(client, key)["id"])
    except steps.BundleNotFound:
        consumer, _, name = key.rpartition("/")
        if not consumer:
            raise CommandError(
                printable.escape(
                    f"there is no work or consumer {key!r}; give the ID of a deleted work, or CONSUMER/NAME"
                )
            ) from None
        return client.works(consumer).id_of(name)


def _filters(flags: HistoryFlags, *, now: datetime) -> dict[str, Any]:
    names = [name for argument in flags.kind for name in argument.split(",") if name]
    return {
        "since": _moment(flags.since, option="--since", now=now),
        "until": _moment(flags.until, option="--until", now=now),
        "kinds": names,
        "newest_first": flags.tail is not None,
        "limit": flags.tail,
    }


def _moment(text: str, *, option: str, now: datetime) -> datetime | None:
    if not text:
        return None
    age = _AGE.fullmatch(text)
    try:
        if age:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} {text}: write 30m, 24h, 7d, or a time such as 2026-11-17T10:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_filtered(flags: HistoryFlags) -> bool:
    return bool(flags.since or flags.until or flags.kind)


def _rendered(entries: "list[HistoryEntry]", *, output: Output, headers: bool, is_everything: bool) -> Iterator[str]:
    match output:
        case "jsonl":
            yield from (f"{_line(entry)}\n" for entry in entries)
        case "json":
            yield rendering.as_json({"items": [_document(entry) for entry in entries], "kind": "HistoryList"})
        case "yaml":
            yield rendering.as_yaml({"items": [_document(entry) for entry in entries], "kind": "HistoryList"})
        case "table" | "wide":
            more = {"CONSUMER"} if is_everything else set()
            if len({entry.resource_id for entry in entries}) > 1:
                more.add("WORK")
            columns = [index for index, head in enumerate(_HEADS) if output == "wide" or head in {*_NARROW, *more}]
            lines = [*([_HEADS] if headers else []), *(_cells(entry, is_wide=output == "wide") for entry in entries)]
            yield rendering.table([[line[index] for index in columns] for line in lines])


def _document(entry: "HistoryEntry") -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if value}


def _line(entry: "HistoryEntry") -> str:
    return printable.json_ascii(json.dumps(_document(entry), ensure_ascii=False))


def _cells(entry: "HistoryEntry", *, is_wide: bool) -> tuple[str, ...]:
    return (
        rendering.moment(entry.time),
        entry.kind,
        entry.consumer or "-",
        entry.resource_id or "-",
        str(entry.version or "-"),
        entry.requester or "-",
        entry.address or "-",
        summary(entry, limit=None if is_wide else _SHOWN) or "-",
        entry.operation_id or "-",
    )


def summary(entry: "HistoryEntry", *, limit: int | None) -> str:
    """Return the detail of an entry as a short text."""
    detail = entry.detail
    parts = [entry.result] if entry.result else []
    if detail.get("observed_version"):
        parts.append(f"version {detail['observed_version']} is reported")
    if detail.get("request"):
        parts.append(f"{detail['request']}{' (dry run)' if detail.get('dry_run') else ''}")
    if detail.get("reason"):
        parts.append(str(detail["reason"]))
    parts += _limited(map(str, detail.get("objects") or detail.get("changes") or ()), limit)
    parts += _limited(map(_condition, detail.get("conditions") or ()), limit)
    parts += _limited(map(_feedback, detail.get("feedback") or ()), limit)
    if detail.get("labels"):
        parts.append(f"labels {', '.join(map(str, detail['labels']))}")
    if detail.get("last_seen"):
        parts.append(f"last seen {detail['last_seen']}")
    # Without a user, the column BY has it.
    hidden = () if entry.user else ("requested_by",)
    parts += [f"{name} {detail[name]}" for name in _PLAIN if name not in hidden and detail.get(name)]
    if detail.get("truncated"):
        parts.append("(truncated)")
    return ", ".join(parts)


_PLAIN = (
    "action",
    "fate",
    "hold_id",
    "works",
    "operator_reason",
    "requested_by",
    "refused_requests",
    "connections",
    "lost",
    "partition",
    "instance",
)


def _limited(texts: Iterable[str], limit: int | None) -> list[str]:
    shown = list(texts)
    if limit is None or len(shown) <= limit:
        return shown
    return [*shown[:limit], f"and {len(shown) - limit} more"]


def _condition(change: Mapping[str, Any]) -> str:
    subject = f"{change['object']} " if change.get("object") else ""
    before = f" (was {change['from']})" if change.get("from") else ""
    reason = f" {change['reason']}" if change.get("reason") else ""
    return f"{subject}{change.get('type')}={change.get('to') or 'absent'}{reason}{before}"


def _feedback(change: Mapping[str, Any]) -> str:
    subject = f"{change['object']} " if change.get("object") else ""
    digest = f" {change['digest']}" if change.get("digest") else ""
    return f"{subject}feedback {change.get('name')}{digest}"
