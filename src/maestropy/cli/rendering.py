"""What client commands print: tables for people, JSON and YAML for programs. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Output = Literal["table", "wide", "json", "yaml", "name"]
Row = Mapping[str, Any]

_GAP = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What a list shows as a table."""

    heads: tuple[str, ...]
    cells: Callable[[Row], Sequence[str]]
    """Makes the line of one object, a cell for each head."""
    narrow: int
    """How many of them fit a terminal; `wide` shows all."""


def listing(found: Mapping[str, Any], *, output: Output, columns: Columns) -> str:
    """Return a list as the user wants it."""
    items: list[Row] = found.get("items") or []
    match output:
        case "json":
            return as_json(found)
        case "yaml":
            return as_yaml(found)
        case "name":
            return "".join(f"{item.get('id', '')}\n" for item in items)
        case "table" | "wide":
            shown = len(columns.heads) if output == "wide" else columns.narrow
            lines = [columns.heads, *(columns.cells(item) for item in items)]
            return table([line[:shown] for line in lines])


def single(found: Row, *, output: Output, fields: Callable[[Row], Iterable[tuple[str, str]]]) -> str:
    """Return one object as the user wants it."""
    match output:
        case "json":
            return as_json(found)
        case "yaml":
            return as_yaml(found)
        case "name":
            return f"{found.get('id', '')}\n"
        case "table" | "wide":
            return table([["FIELD", "VALUE"], *([name, value] for name, value in fields(found))])


def table(lines: Sequence[Sequence[str]]) -> str:
    """Return lines in columns, each as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (_GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def as_json(found: Any) -> str:
    """Return JSON for people."""
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def as_yaml(found: Any) -> str:
    """Return YAML."""
    import yaml

    text: str = yaml.safe_dump(found, sort_keys=False, allow_unicode=True)
    return text


def consumer_cells(found: Row) -> list[str]:
    """Return a consumer's line."""
    return [
        str(found.get("id", "")),
        str(found.get("name", "")),
        labels(found.get("labels")),
        moment(found.get("created_at")),
    ]


def consumer_fields(found: Row) -> Iterable[tuple[str, str]]:
    """Yield what is known of a consumer."""
    yield "ID", str(found.get("id", ""))
    yield "Name", str(found.get("name", ""))
    yield "Labels", labels(found.get("labels"))
    yield "Created", moment(found.get("created_at"))
    yield "Updated", moment(found.get("updated_at"))


def bundle_cells(found: Row) -> list[str]:
    """Return a bundle's line."""
    metadata = found.get("metadata") or {}
    return [
        str(found.get("id", "")),
        str(metadata.get("name") or found.get("name", "")),
        str(found.get("consumer_name", "")),
        str(found.get("version", "")),
        moment(found.get("created_at")),
        bundle_status(found),
        labels(metadata.get("labels")),
    ]


def bundle_fields(found: Row) -> Iterable[tuple[str, str]]:
    """Yield what is known of a bundle."""
    cells = bundle_cells(found)
    yield from zip(("ID", "Name", "Consumer", "Version", "Created", "Status", "Labels"), cells, strict=True)
    yield "Updated", moment(found.get("updated_at"))
    if found.get("deleted_at"):
        yield "Deleting since", moment(found["deleted_at"])
    yield "Manifests", ", ".join(f"{each.get('kind')}/{_name(each)}" for each in found.get("manifests") or ())


def bundle_status(found: Row) -> str:
    """Return Applied, Pending or Unknown, by the condition Applied; Deleting while it goes."""
    if found.get("deleted_at"):
        return "Deleting"
    conditions = (found.get("status") or {}).get("conditions") or ()
    applied = next((each.get("status") for each in conditions if each.get("type") == "Applied"), None)
    return {"True": "Applied", "False": "Pending"}.get(str(applied), "Unknown")


CONSUMERS = Columns(heads=("ID", "NAME", "LABELS", "CREATED"), cells=consumer_cells, narrow=4)
BUNDLES = Columns(
    heads=("ID", "NAME", "CONSUMER", "VERSION", "CREATED", "STATUS", "LABELS"), cells=bundle_cells, narrow=6
)


def labels(found: Mapping[str, str] | None) -> str:
    """Return labels as `a=b,c=d`."""
    return ",".join(f"{name}={value}" for name, value in sorted((found or {}).items()))


def moment(text: Any) -> str:
    """Return a time to the second."""
    return f"{str(text)[:19]}Z" if text else ""


def _name(manifest: Row) -> str:
    return str((manifest.get("metadata") or {}).get("name", ""))
