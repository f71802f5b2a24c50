"""What a declared field makes of a text, for a program that does not exist."""

import re
from dataclasses import dataclass, field
from typing import Literal

import pytest

from maestropy.flags import SettingsError, fill, flag, flags_of
from maestropy.flags.explanation import explanations


def read_secret(text: str) -> str:
    if text != "sesame":
        raise ValueError("opens nothing; ask the owner")
    return text.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Door"""

    colour: Literal["red", "blue"] = field(default="red", metadata=flag("--colour"))
    """What it looks like."""

    word: str | None = field(default=None, metadata=flag("--word", read=read_secret, hidden=True))
    """What opens it."""

    locks: tuple[str, ...] = field(default=(), metadata=flag("--locks"))
    """Its locks."""

    width: int = 1
    """No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A house."""

    front: Door = field(default_factory=Door)


FLAGS = {each.name: each for each in flags_of(House)}


def test_only_declared_fields_are_flags() -> None:
    assert list(FLAGS) == ["--colour", "--word", "--locks"]
    assert [each.hidden for each in FLAGS.values()] == [False, True, False]


def test_texts_fill_settings_and_leave_the_rest_alone() -> None:
    texts = {"--colour": "blue", "--word": "sesame", "--locks": "a, b"}
    assert fill(House(), texts, flags=FLAGS, command="house") == House(
        front=Door(colour="blue", word="SESAME", locks=("a", "b"))
    )
    assert fill(House(), {}, flags=FLAGS, command="house") == House()


def test_the_empty_text_means_absence_where_there_is_one() -> None:
    assert fill(House(), {"--word": ""}, flags=FLAGS, command="house").front.word is None


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        pytest.param(
            {"--window": "1"}, "--window is not a flag of the house; see `maestro house --help`", id="unknown"
        ),
        pytest.param({"--colour": "green"}, "--colour=green: use one of red, blue", id="not-a-choice"),
        pytest.param({"--word": "hunter2"}, "--word opens nothing; ask the owner", id="own-reader-quotes-nothing"),
    ],
)
def test_a_mistake_names_the_flag(texts: dict[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(complaint)}$"):
        fill(House(), texts, flags=FLAGS, command="house")


def test_the_text_below_a_field_explains_it() -> None:
    assert explanations(Door) == {
        "colour": "What it looks like.",
        "word": "What opens it.",
        "locks": "Its locks.",
        "width": "No flag.",
    }
