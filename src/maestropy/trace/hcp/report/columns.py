"""Format tables whose last column is wrapped, so that a report fits 120 columns. Pure."""

import textwrap
from collections.abc import Iterable, Sequence

from maestropy.trace.output import printable, width

WIDEST = 120
_INDENT = "  "
_GAP = "  "


def wrapped_table(
    rows: Iterable[Sequence[str]], *, head: Sequence[str], widest_first: int, group: int | None = None
) -> list[str]:
    """Return rows as aligned lines; the first and the last column are wrapped, nothing is cut.

    Args:
        rows: The cells.
        head: The heads of the columns.
        widest_first: The width at which the first column is wrapped.
        group: A column that becomes a line of its own, `from CELL`, above the rows that share it.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    shown = [_without(row, group) for row in (list(head), *cells)]
    widths = [max(width(row[number]) for row in shown) for number in range(len(shown[0]) - 1)]
    widths[0] = min(widths[0], widest_first)
    left = WIDEST - len(_INDENT) - sum(widths) - len(_GAP) * len(widths)
    lines = _lines(shown[0], widths, left)
    above = None
    for row, full in zip(shown[1:], cells, strict=True):
        if group is not None and full[group] != above:
            above = full[group]
            lines += textwrap.wrap(f"from {above}", WIDEST, initial_indent=_INDENT, subsequent_indent=_INDENT * 3)
        lines += _lines(row, widths, left)
    return lines


def _without(row: Sequence[str], group: int | None) -> list[str]:
    return [cell for number, cell in enumerate(row) if number != group]


def _lines(row: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    indent = row[0][: len(row[0]) - len(row[0].lstrip())]
    first = textwrap.wrap(row[0], widths[0], subsequent_indent=f"{indent}  ", break_on_hyphens=False) or [""]
    first[0] = indent + first[0].lstrip()
    last = textwrap.wrap(row[-1], left, break_on_hyphens=False) or [""]
    lines = []
    for number in range(max(len(first), len(last))):
        start = first[number] if number < len(first) else ""
        middle = row[1:-1] if number == 0 else [""] * (len(row) - 2)
        end = last[number] if number < len(last) else ""
        padded = [cell + " " * max(0, size - width(cell)) for cell, size in zip((start, *middle), widths, strict=True)]
        lines.append((_INDENT + _GAP.join([*padded, end])).rstrip())
    return lines
