"""The lines around a record, as they may be shown. Reads a bounded piece of a plain file and nothing else.

Only lines that begin a record are shown: the lines below one may be a payload, which is nobody's business.
"""

from collections.abc import Sequence

from maestropy.trace.request.hits import Hit
from maestropy.trace.request.inputs import Writer
from maestropy.trace.request.lines import STAMPED, Raw, starts_record, unwrapped
from maestropy.trace.request.pagerows import shown_line

_NEAR = 1 << 20
_LONGEST = 300
Numbered = tuple[int, str]


def around(writers: Sequence[Writer], hit: Hit, *, count: int) -> list[Numbered]:
    """Return up to `count` lines before and after a record, with their numbers; none for what is no plain file."""
    origin = writers[hit.file].origin
    if origin is None or not count:
        return []
    start = max(0, hit.offset - _NEAR)
    with origin.open("rb") as stream:
        stream.seek(start)
        before = stream.read(hit.offset - start).split(b"\n")[:-1]
        after = stream.read(_NEAR).split(b"\n")[1:]
    if start:
        del before[0]  # it began before
    first = hit.line - len(before)
    earlier = [(first + place, line) for place, line in enumerate(before) if _begins(line)]
    later = [(hit.line + place, line) for place, line in enumerate(after, start=1) if _begins(line)]
    return [(number, _shown(line)) for number, line in (*earlier[-count:], *later[:count])]


def _begins(line: bytes) -> bool:
    text = unwrapped(Raw(0, 0, line)).text
    # Collectors stamp every line, those that go on with a record among them.
    stamp = STAMPED.match(text)
    return starts_record(text[stamp.end() :] if stamp else text)


def _shown(line: bytes) -> str:
    return shown_line(line.decode("utf-8", "replace").rstrip(), longest=_LONGEST)
