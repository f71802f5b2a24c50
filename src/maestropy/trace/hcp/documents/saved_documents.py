"""Save the documents of a walk, so that it can be repeated offline.

Pure except `write`. Secrets are removed before anything is written. Absent results are saved too: otherwise the
repeated walk would report them as unknown.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from maestropy.journal import redact
from maestropy.trace.hcp.documents import document_types
from maestropy.trace.hcp.model import Walk
from maestropy.trace.hcp.query import HopQuery, QueryOutcome


def files(walk: Walk) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the files to write, by name."""
    topics = dict.fromkeys(query.topic for query in walk.context.results)
    for number, topic in enumerate(topics, start=1):
        documents = [{"where": document.where, "value": document.value} for document in walk.context.documents(topic)]
        if documents:
            name = "".join(char if char.isalnum() else "-" for char in topic.value.lower())
            content = {"kind": document_types.TAKEN, "topic": topic.value, "documents": documents}
            yield f"{number:02d}-{name}.json", redact.fields(content)
    yield "00-walk.json", redact.fields(_marker(walk))


def write(walk: Walk, directory: Path) -> list[Path]:
    """Write the documents of a walk."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in files(walk):
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
        written.append(path)
    return written


def _marker(walk: Walk) -> dict[str, Any]:
    absent = [
        {**_query(query), "why": result.why}
        for query, result in walk.context.results.items()
        if result.outcome is QueryOutcome.ABSENT
    ]
    return {
        "kind": document_types.SAVED,
        "takenAt": f"{walk.context.snapshot.now:%Y-%m-%dT%H:%M:%SZ}",
        "source": walk.context.snapshot.source,
        "absent": absent,
    }


def _query(query: HopQuery) -> dict[str, str]:
    named = {name: getattr(query, name) for name in ("name", "namespace", "cid", "arm")}
    return {"topic": query.topic.value, **{name: value for name, value in named.items() if value}}
