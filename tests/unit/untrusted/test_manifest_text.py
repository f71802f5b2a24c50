"""The text of manifests means what it means to Kubernetes, and no key of it is lost."""

import pytest
import yaml

from maestropy.untrusted import manifest_text, yaml_documents
from maestropy.untrusted.errors import InputRejected


def test_a_key_that_yaml_has_twice_is_rejected_with_both_lines() -> None:
    with pytest.raises(manifest_text.BadKey, match=r"the key metadata\.data is there twice, first in line 2") as caught:
        manifest_text.load_all('metadata:\n  data: {a: "1"}\n  data: {b: "2"}\n')
    assert caught.value.problem_mark is not None
    assert caught.value.problem_mark.line == 2


def test_a_key_in_a_list_is_named_with_its_index() -> None:
    with pytest.raises(manifest_text.BadKey, match=r"the key items\[1\]\.a is there twice"):
        manifest_text.load_all("items: [{a: 1}, {a: 1, a: 2}]")


def test_a_key_that_json_has_twice_is_rejected() -> None:
    with pytest.raises(manifest_text.BadKey, match='the key "data" twice'):
        manifest_text.load_all('{"x": {"data": {"a": "1"}, "data": {"b": "2"}}}')


def test_a_key_may_override_a_merged_one() -> None:
    text = "base: &base {a: 1, b: 2}\nchild:\n  <<: *base\n  b: 3\n"
    assert manifest_text.load_all(text)[0]["child"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(("key", "kind"), [("on", "boolean"), ("no", "boolean"), ("~", "null"), ("null", "null")])
def test_a_key_that_yaml_takes_for_another_type_is_rejected_with_the_remedy(key: str, kind: str) -> None:
    with pytest.raises(manifest_text.BadKey, match=kind) as caught:
        manifest_text.load_all(f"data: {{{key}: x}}")
    assert caught.value.advice == f'quote it: "{key}"'
    assert manifest_text.load_all(f'data: {{"{key}": x}}') == [{"data": {key: "x"}}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000),
        ("1E+16", 10**16),
        ("1.5e3", 1500),
        ("1e-05", 1e-05),
        ("1.5", 1.5),
        ("1.0", 1.0),
        ("-0.25", -0.25),
        ("9223372036854775807", 2**63 - 1),
        ("0", 0),
        ("-7", -7),
    ],
)
def test_a_number_is_the_same_in_json_and_yaml(text: str, value: float) -> None:
    (from_json,) = manifest_text.load_all(f'{{"n": {text}}}')
    (from_yaml,) = manifest_text.load_all(f"n: {text}")
    assert from_json == from_yaml == {"n": value}
    assert type(from_json["n"]) is type(from_yaml["n"]) is type(value)


@pytest.mark.parametrize("text", ["12:30", "22:22:22", "2026-01-02", "1e", "e3", "1.2.3", "0x", "+", ".", "1e3x"])
def test_text_that_kubernetes_reads_as_a_string_stays_one(text: str) -> None:
    assert manifest_text.load_all(f"n: {text}") == [{"n": text}]


@pytest.mark.parametrize(("text", "value"), [("0o17", 15), ("017", 15), ("0x1F", 31), ("0b11", 3), ("1_000", 1000)])
def test_integers_of_other_bases_are_those_of_kubernetes(text: str, value: int) -> None:
    assert manifest_text.load_all(f"n: {text}") == [{"n": value}]


def test_a_decimal_key_is_a_string_as_in_kubernetes() -> None:
    assert manifest_text.load_all("data: {1: a, -20: b}") == [{"data": {"1": "a", "-20": "b"}}]


def test_a_decimal_key_is_the_same_as_the_quoted_one() -> None:
    with pytest.raises(manifest_text.BadKey, match=r"the key data\.1 is there twice"):
        manifest_text.load_all('data: {1: a, "1": b}')


@pytest.mark.parametrize("key", ["0x10", "1_000", "010", "1.5", "1e3"])
def test_a_key_that_kubernetes_would_rewrite_is_rejected(key: str) -> None:
    with pytest.raises(manifest_text.BadKey, match=f"the key data.{key} is a number in YAML, not a string"):
        manifest_text.load_all(f"data: {{{key}: a}}")


def test_flow_yaml_that_is_not_json_is_still_yaml() -> None:
    assert manifest_text.load_all("{a: 1, b: [x, y]}") == [{"a": 1, "b": ["x", "y"]}]
    assert manifest_text.load_all('{"a": 1}\n---\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]


def test_json_has_the_limits_of_yaml() -> None:
    deep = yaml_documents.DEPTH + 1
    with pytest.raises(InputRejected, match="levels deep"):
        manifest_text.load_all("[" * deep + "]" * deep)
    with pytest.raises(InputRejected, match="levels deep"):
        manifest_text.load_all("[" * 200_000 + "]" * 200_000)
    with pytest.raises(InputRejected, match="values"):
        manifest_text.load_all(f"[{','.join('0' * (yaml_documents.VALUES + 1))}]")
    with pytest.raises(yaml.YAMLError, match="more than 400 digits"):
        manifest_text.load_all(f'{{"n": {"9" * 5000}}}')
