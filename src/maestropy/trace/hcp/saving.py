"""Keep what a walk was told, so that it can be walked again without anybody to ask.

Pure but for `write`. Secrets are taken out before anything is written. What was absent is kept too: that there was
nothing is an answer, and without it the second walk would only say that it does not know.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from maestropy.journal import redact
from maestropy.trace.hcp import recognise
from maestropy.trace.hcp.model import Walk
from maestropy.trace.hcp.question import Outcome, Question


def files(walk: Walk) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the files to write, by name."""
    topics = dict.fromkeys(question.topic for question in walk.scene.answers)
    for number, topic in enumerate(topics, start=1):
        documents = [{"where": each.where, "value": each.value} for each in walk.scene.documents(topic)]
        if documents:
            name = "".join(char if char.isalnum() else "-" for char in topic.value.lower())
            content = {"kind": recognise.TAKEN, "topic": topic.value, "documents": documents}
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
        {**_question(question), "why": answer.why}
        for question, answer in walk.scene.answers.items()
        if answer.outcome is Outcome.ABSENT
    ]
    return {
        "kind": recognise.SAVED,
        "takenAt": f"{walk.scene.taken.now:%Y-%m-%dT%H:%M:%SZ}",
        "source": walk.scene.taken.source,
        "absent": absent,
    }


def _question(question: Question) -> dict[str, str]:
    named = {name: getattr(question, name) for name in ("name", "namespace", "cid", "arm")}
    return {"topic": question.topic.value, **{name: value for name, value in named.items() if value}}
