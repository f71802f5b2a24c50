"""Every `maestro …` command in texts of the console is accepted by the command line."""

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maestropy.cli.command_tree import app
from maestropy.console.collector import Collector
from maestropy.console.pages import stuck
from maestropy.console.pages.work_page import RestWorks
from maestropy.console.picture import Picture
from tests.console.fake_api import FakeApi, bundle, condition, status

STATIC = Path(stuck.__file__).parents[1] / "static"
_IN_TEXT = re.compile(r"\bmaestro((?: (?:--?[a-z][a-z-]*|[a-z][a-z0-9-]*|[A-Z]+))+)")
_WITH_OWN_FLAGS = {"server", "agent", "migration"}
_IN_SENTENCES = {"up", "console"}
"""After these a sentence goes on in lower case; they are checked with the words that are flags and their values."""


def in_texts() -> Iterator[list[str]]:
    """Yield the commands of the words that pages show."""
    for found in _IN_TEXT.findall((STATIC / "texts.js").read_text(encoding="utf-8")):
        words = found.split()
        if words[0] in _IN_SENTENCES:
            words = [words[0], *(word for word in words[1:] if word.startswith("--") or word.isupper())]
        if words[0] not in _WITH_OWN_FLAGS:
            yield words


TEXTS = list(in_texts())


def test_texts_have_commands() -> None:
    assert ["trace", "logs", "collect"] in TEXTS


@pytest.mark.parametrize("words", TEXTS, ids=shlex.join)
def test_command_in_a_text_is_accepted(words: list[str]) -> None:
    command, _, unused = app.parse_commands(words)
    assert not unused or unused[0].startswith("--") or unused[0].isupper(), (command, unused)


async def test_commands_of_stuck_and_of_a_work_are_accepted() -> None:
    failed = status(1, [condition("Applied", ok=False, message='namespaces "shop" not found')])
    works = [
        bundle(1, version=2),
        bundle(2, status=failed),
        bundle(3, deleted_at="2026-11-01T00:00:00Z"),
        bundle(4, status=None),
        bundle(5, version=2),
    ]
    api = FakeApi(works)
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=60)
    api.pauses = [{"consumer_name": "cluster5", "paused_at": "2026-11-17T10:00:00Z", "paused_by": "ann"}]
    api.holds = [{"id": "h", "consumer_name": name, "reason": "R", "work_count": 1} for name in ("gone", "cluster1")]
    picture = Picture("test")
    client = api.client()
    await Collector(client, picture).refresh()
    groups = stuck.model(picture, now=datetime.now(UTC).timestamp())["groups"]
    assert {group["kind"] for group in groups} >= {"unapplied", "deleting", "undelivered", "paused", "held"}
    advice = [text for group in groups for text in group["advice"]]
    commands = [*advice, *RestWorks(client=client, picture=picture).commands("id-1")]
    lines = [shlex.split(text, comments=True) for text in commands if text.startswith("maestro ")]
    assert len(lines) > 10
    for words in lines:
        app.parse_args(words[1:], exit_on_error=False, print_error=False)
