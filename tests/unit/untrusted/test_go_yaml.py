"""The table of values that gopkg.in/yaml.v3 reads from plain scalars."""

import math
from typing import Any

import pytest

from maestropy.untrusted import go_yaml, yaml_documents
from maestropy.untrusted.errors import InputRejected

VALUES: list[tuple[str, Any]] = [
    ("0123", 83), ("-0123", -83), ("089", 89.0), ("0", 0), ("1_000", 1000), ("0_", 0), ("0x1F", 31), ("-0x1f", -31),
    ("0b101", 5), ("0o17", 15), ("0O17", 15), ("+12", 12), ("1e3", 1000.0), ("1E-2", 0.01), ("1.", 1.0), (".5", 0.5),
    ("1_0.5", 10.5), (".5_0", ".5_0"), ("_1", "_1"), ("0x", "0x"), ("12:30", "12:30"), ("1e999", "1e999"),
    ("9223372036854775808", 2**63), ("18446744073709551616", 2.0**64), ("+9223372036854775808", 2.0**63),
    ("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y"), ("n", "n"), ("Yes", "Yes"),
    ("true", True), ("True", True), ("TRUE", True), ("tRUE", "tRUE"), ("FALSE", False),
    ("~", None), ("null", None), ("NULL", None), ("nUll", "nUll"), ("", None),
    (".inf", math.inf), ("-.Inf", -math.inf), ("2026-01-01", "2026-01-01"), ("'0123'", "0123"), ('"yes"', "yes"),
    ("!!str 0123", "0123"), ("!!float 3", 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_plain_scalar_is_read_as_yaml_v3_reads_it(text: str, value: Any) -> None:
    read = yaml_documents.load(f"a: {text}", loader=go_yaml.GoYamlLoader)["a"]
    assert (read, type(read)) == (value, type(value))


def test_keys_such_as_on_are_texts() -> None:
    assert yaml_documents.load("{on: 1, 0x1F: 2}", loader=go_yaml.GoYamlLoader) == {"on": 1, 31: 2}


def test_a_repeated_key_is_rejected_with_line_and_path() -> None:
    with pytest.raises(InputRejected, match=r"^line 4: the key a\[0\]\.b is there twice, first in line 2; keep one"):
        yaml_documents.load("a:\n- b: 1\n  c: 1\n  b: 2\n", loader=go_yaml.GoYamlLoader)
