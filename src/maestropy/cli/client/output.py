"""Render the output of client commands: tables, JSON, YAML and templates. Pure."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from maestropy.cli import screen
from maestropy.cli.client import formats
from maestropy.cli.client.formats import Format
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.actions import ActionWork, DeliveryPause, OperatorAction
    from maestropy.sdk.consumers import DataSafetyHold

Output = Literal["table", "wide", "json", "yaml", "name"]
Row = Mapping[str, Any]

GONE = "is_gone"
"""The mark of a row that a watch no longer finds."""
_GAP = "   "
_HOLD_MESSAGE = "data-safety hold"
_SHOWN_PAUSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table."""

    heads: tuple[str, ...]
    cells: Callable[[Row], Sequence[str]]
    """Returns the cells of one object, one for each head."""
    narrow: int
    """The number of columns of `table`; `wide` shows all."""


def listing(result: Mapping[str, Any], *, output: Format, columns: Columns, headers: bool = True) -> str:
    """Return a list in an output format."""
    items: list[Row] = result.get("items") or []
    match output.kind:
        case "json":
            return as_json(result)
        case "yaml":
            return as_yaml(result)
        case "name":
            return "".join(map(name_line, items))
        case "jsonpath":
            return formats.by_jsonpath(output.template, result)
        case "custom-columns":
            return table(formats.by_columns(output.template, items)[0 if headers else 1 :])
        case "table" | "wide":
            shown = len(columns.heads) if output.kind == "wide" else columns.narrow
            lines = [*([columns.heads] if headers else []), *(columns.cells(item) for item in items)]
            return table([line[:shown] for line in lines])


def name_line(row: Row) -> str:
    """Return the line of an object for `-o name`: its ID."""
    return f"{printable.escape(str(row.get('id', '')))}\n"


def single(row: Row, *, output: Format, fields: Callable[[Row], Iterable[tuple[str, str]]]) -> str:
    """Return one object in an output format."""
    match output.kind:
        case "json":
            return as_json(row)
        case "yaml":
            return as_yaml(row)
        case "name":
            return name_line(row)
        case "jsonpath":
            return formats.by_jsonpath(output.template, row)
        case "custom-columns":
            return table(formats.by_columns(output.template, [row]))
        case "table" | "wide":
            return table([["FIELD", "VALUE"], *([name, value] for name, value in fields(row))])


def table(lines: Sequence[Sequence[str]], *, at_least: Sequence[int] = ()) -> str:
    """Return lines in columns, each as wide as its widest cell; no cell can break out of its line."""
    lines = [[printable.escape(cell) for cell in line] for line in lines]
    all_widths = widths(lines, at_least=at_least)
    padded = (_GAP.join(cell.ljust(width) for cell, width in zip(line, all_widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def widths(lines: Sequence[Sequence[str]], *, at_least: Sequence[int] = ()) -> list[int]:
    """Return the width of each column."""
    columns = [[len(printable.escape(cell)) for cell in column] for column in zip(*lines, strict=True)]
    least = at_least or [0] * len(columns)
    return [max(*lengths, width) for lengths, width in zip(columns, least, strict=False)]


def as_json(value: Any) -> str:
    """Return indented JSON."""
    return printable.json_ascii(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def as_yaml(value: Any) -> str:
    """Return YAML."""
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    # Unprintable characters, such as bidirectional overrides, are escaped with all others beyond ASCII.
    is_shown = printable.is_safe(text) and screen.can_encode(text)
    return text if is_shown else yaml.safe_dump(value, sort_keys=False, allow_unicode=False)


def consumer_cells(row: Row) -> list[str]:
    """Return the cells of a consumer."""
    return [
        str(row.get("id", "")),
        str(row.get("name", "")),
        labels(row.get("labels")),
        moment(row.get("created_at")),
    ]


EVICTION_PENDING = "EvictionPending"


def consumer_fields(row: Row) -> Iterable[tuple[str, str]]:
    """Yield the fields of a consumer."""
    yield "ID", str(row.get("id", ""))
    yield "Name", str(row.get("name", ""))
    yield "Labels", labels(row.get("labels"))
    yield "Created", moment(row.get("created_at"))
    yield "Updated", moment(row.get("updated_at"))
    pause = row.get("delivery_pause")
    if pause:
        why = f": {pause['reason']}" if pause["reason"] else ""
        yield "Paused", f"since {moment(pause['paused_at'])} by {pause['paused_by']}{why}"
    hold = row.get("data_safety_hold")
    if hold:
        works = works_text(hold["work_count"])
        yield "Hold", f"{hold['reason']}: {works} since {moment(hold['since'])}, {hold['message']}"
        yield "Hold ID", hold["id"]
        pending = hold.get("pending_evictions")
        if pending:
            works = works_text(pending["work_count"])
            yield "Eviction", f"{EVICTION_PENDING}: {works}{_countdown(pending['since'], pending['deadline'])}"


def works_text(count: int) -> str:
    """Return a number of works in words."""
    return "1 work" if count == 1 else f"{count} works"


def hold_cell(hold: "DataSafetyHold") -> str:
    """Return the cell of a hold: the reason, and beside it the works that will be evicted."""
    cell = f"{hold.reason} ({works_text(hold.work_count)})"
    pending = hold.pending
    if pending is None:
        return cell
    if hold.reason != EVICTION_PENDING:
        cell += f", {EVICTION_PENDING} ({works_text(pending.work_count)})"
    return cell + (f" until {moment(pending.deadline)}" if pending.deadline else "")


def _countdown(since: str, deadline: str) -> str:
    return f" since {moment(since)}, deleted from {moment(deadline)} on unless they come back" if deadline else ""


def hold_lines(holds: "Mapping[str, DataSafetyHold]", *, missing: Collection[str]) -> str:
    """Return what the list of consumers says about data-safety holds; `missing` are consumers that do not exist."""
    lines = [
        f"Consumer {name} does not exist, and its agent keeps {works_text(holds[name].work_count)} "
        f"({holds[name].reason}). Is this the right database? Then create the consumer: see docs/data-safety.md"
        for name in sorted(missing)
    ]
    existing = sorted(name for name in holds if name not in missing)
    if existing:
        agents = "1 agent keeps" if len(existing) == 1 else f"{len(existing)} agents keep"
        lines.append(
            f"Data-safety holds: {agents} works that the database does not ask for ({', '.join(existing[:10])}); "
            "run `maestro consumer adopt NAME --dry-run`"
        )
    return "".join(f"{printable.escape(line)}\n" for line in lines)


def adoption(hold: "DataSafetyHold", *, names: Mapping[str, str] | None = None) -> str:
    """Return what an adoption of the database does to the works of a hold; `names` by the IDs of works it has."""
    names = names or {}
    absent = set(hold.absent_works)
    applied = [name for name in hold.works if name not in absent]
    unnamed = hold.work_count - len(hold.works)
    lines = [
        f"Hold {hold.id} of consumer {hold.consumer}, since {moment(hold.since)}",
        f"Reason: {hold.reason}: {hold.message}",
        f"Works that the database has, and that would be applied: {len(applied)}",
        *(f"  {name} {names.get(name, '')}".rstrip() for name in applied),
        f"Works that the database does not have, and whose objects would be deleted: {len(absent)}",
        *(f"  {name}" for name in sorted(absent)),
    ]
    if unnamed > 0:
        lines.append(f"Works that the agent did not name, and that would be applied or deleted: {unnamed}")
    if hold.pending is not None:
        pending = hold.pending
        countdown = _countdown(pending.since, pending.deadline)
        lines.append(f"Works that are evicted also without an adoption: {works_text(pending.work_count)}{countdown}")
        # With no hold beside them, they are listed above.
        lines.extend(f"  {name}" for name in pending.works if hold.reason != EVICTION_PENDING)
    return "".join(f"{printable.escape(line)}\n" for line in lines)


def bundle_cells(row: Row) -> list[str]:
    """Return the cells of a resource bundle."""
    metadata = row.get("metadata") or {}
    return [
        str(row.get("id", "")),
        str(metadata.get("name") or row.get("name", "")),
        str(row.get("consumer_name", "")),
        str(row.get("version", "")),
        moment(row.get("created_at")),
        bundle_status(row),
        labels(metadata.get("labels")),
    ]


def bundle_fields(row: Row) -> Iterable[tuple[str, str]]:
    """Yield the fields of a resource bundle."""
    cells = bundle_cells(row)
    yield from zip(("ID", "Name", "Consumer", "Version", "Created", "Status", "Labels"), cells, strict=True)
    yield "Updated", moment(row.get("updated_at"))
    if row.get("deleted_at"):
        yield "Deleting since", moment(row["deleted_at"])
    yield "Manifests", ", ".join(f"{manifest.get('kind')}/{_name(manifest)}" for manifest in row.get("manifests") or ())


def bundle_status(row: Row) -> str:
    """Return Held, Deleting, Pending, Applied, Failed or Unknown, by the conditions DataSafetyHold and Applied.

    Pending is a status of an older version than the stored one. A row that a watch no longer finds is Deleted.
    """
    if row.get(GONE):
        return "Deleted"
    status = row.get("status") or {}
    conditions = {str(condition.get("type")): condition for condition in status.get("conditions") or ()}
    applied = conditions.get("Applied", {})
    is_failed = applied.get("status") == "False"
    # An object that belongs to a work of another database is held without the condition of the work.
    is_kept = is_failed and _HOLD_MESSAGE in str(applied.get("message"))
    if is_kept or conditions.get("DataSafetyHold", {}).get("status") == "True":
        return "Held"
    if row.get("deleted_at"):
        return "Deleting"
    if applied and _is_of_older_version(row, status.get("ObservedVersion"), applied.get("observedGeneration")):
        return "Pending"
    if is_failed:
        return "Failed"
    return "Applied" if applied.get("status") == "True" else "Unknown"


def _is_of_older_version(row: Row, *reported: object) -> bool:
    """Say whether a status is of an older version; a Go agent reports a new one before its conditions are of it."""
    version = row.get("version")
    return isinstance(version, int) and any(isinstance(one, int) and 0 < one < version for one in reported)


CONSUMERS = Columns(heads=("ID", "NAME", "LABELS", "CREATED"), cells=consumer_cells, narrow=4)


def with_column(columns: Columns, head: str, texts: Mapping[str, str]) -> Columns:
    """Return the columns of consumers with one more; `texts` are its cells by consumer name."""

    def cells(row: Row) -> list[str]:
        return [*columns.cells(row), texts.get(str(row.get("name", "")), "")]

    return Columns(heads=(*columns.heads, head), cells=cells, narrow=columns.narrow + 1)


def pause_lines(pauses: "Sequence[DeliveryPause]") -> str:
    """Return who paused the delivery to the first consumers, since when and why, and what ends it."""
    lines = [
        f"Delivery to consumer {pause.consumer} is paused by {pause.paused_by} since {moment(pause.paused_at)}"
        f"{f': {pause.reason}' if pause.reason else ''}; maestro consumer resume {pause.consumer}"
        for pause in pauses[:_SHOWN_PAUSES]
    ]
    if len(pauses) > _SHOWN_PAUSES:
        lines.append(f"Delivery to {len(pauses) - _SHOWN_PAUSES} more consumers is paused")
    return "".join(f"{printable.escape(line)}\n" for line in lines)


def action(plan: "OperatorAction") -> str:
    """Return what an action does, or would do."""
    lines = [*plan.effects, *(f"Warning: {warning}." for warning in plan.warnings)]
    if plan.works:
        lines.append(f"Works: {plan.work_count}")
        lines.extend(_action_work(work) for work in plan.works)
        if plan.work_count > len(plan.works):
            lines.append(f"  and {plan.work_count - len(plan.works)} more")
    return "".join(f"{printable.escape(line)}\n" for line in lines)


def _action_work(work: "ActionWork") -> str:
    deleting = ", being deleted" if work.is_deleting else ""
    return f"  {work.id} {work.name or '-'} version {work.version}{deleting}"


BUNDLES = Columns(
    heads=("ID", "NAME", "CONSUMER", "VERSION", "CREATED", "STATUS", "LABELS"), cells=bundle_cells, narrow=6
)


def labels(values: Mapping[str, str] | None) -> str:
    """Return labels as `a=b,c=d`."""
    return ",".join(f"{name}={value}" for name, value in sorted((values or {}).items()))


def moment(text: Any) -> str:
    """Return a time to the second."""
    return f"{str(text)[:19]}Z" if text else ""


def _name(manifest: Row) -> str:
    return str((manifest.get("metadata") or {}).get("name", ""))
