"""Flags are declared as fields of settings dataclasses; texts of the command line override their defaults."""

import re
from dataclasses import dataclass, field
from typing import Literal

import pytest

from maestropy.flags import SettingsError, flag, flags_of, override
from maestropy.flags.help_text import help_texts


def read_secret(text: str) -> str:
    if text != "s3cret":
        raise ValueError("is not valid; create a new one")
    return text.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Broker"""

    driver: Literal["grpc", "mqtt"] = field(default="grpc", metadata=flag("--driver"))
    """The driver."""

    token: str | None = field(default=None, metadata=flag("--token", read=read_secret, hidden=True))
    """The token."""

    topics: tuple[str, ...] = field(default=(), metadata=flag("--topics"))
    """The topics."""

    width: int = 1
    """No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleSettings:
    """The settings of an example program."""

    broker: BrokerSettings = field(default_factory=BrokerSettings)


FLAGS = {declared.name: declared for declared in flags_of(ExampleSettings)}


def test_only_fields_with_flag_metadata_are_flags() -> None:
    assert list(FLAGS) == ["--driver", "--token", "--topics"]
    assert [declared.hidden for declared in FLAGS.values()] == [False, True, False]


def test_flag_values_override_defaults_and_keep_other_settings() -> None:
    texts = {"--driver": "mqtt", "--token": "s3cret", "--topics": "a, b"}
    assert override(ExampleSettings(), texts, flags=FLAGS, command="server") == ExampleSettings(
        broker=BrokerSettings(driver="mqtt", token="S3CRET", topics=("a", "b"))
    )
    assert override(ExampleSettings(), {}, flags=FLAGS, command="server") == ExampleSettings()


def test_empty_value_of_an_optional_flag_is_none() -> None:
    assert override(ExampleSettings(), {"--token": ""}, flags=FLAGS, command="server").broker.token is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param(
            {"--unknown": "1"}, "--unknown is not a flag of the server; see `maestro server --help`", id="unknown"
        ),
        pytest.param({"--driver": "amqp"}, "--driver=amqp: use one of grpc, mqtt", id="not-a-choice"),
        pytest.param(
            {"--token": "hunter2"},
            "--token is not valid; create a new one",
            id="custom-reader-does-not-quote-the-value",
        ),
    ],
)
def test_error_names_the_flag(texts: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(message)}$"):
        override(ExampleSettings(), texts, flags=FLAGS, command="server")


def test_string_below_a_field_is_its_help_text() -> None:
    assert help_texts(BrokerSettings) == {
        "driver": "The driver.",
        "token": "The token.",
        "topics": "The topics.",
        "width": "No flag.",
    }
