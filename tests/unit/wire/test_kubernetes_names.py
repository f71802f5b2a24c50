"""Names are validated with the rules and the error texts of Kubernetes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import kubernetes_names

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
TOO_LONG = "must be no more than 63 characters"


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("cluster1", []),
        ("1", []),
        ("a" * 63, []),
        ("a" * 64, [TOO_LONG]),
        ("", [LABEL_RULE]),
        ("_", [LABEL_RULE]),
        ("Cluster", [LABEL_RULE]),
        ("a-", [LABEL_RULE]),
        ("a\n", [LABEL_RULE]),
        ("a.b", ["must not contain dots"]),
        ("é" * 40, [TOO_LONG, LABEL_RULE]),
    ],
)
def test_dns1123_label(value: str, problems: list[str]) -> None:
    assert kubernetes_names.dns1123_label(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("apps", []),
        ("work.open-cluster-management.io", []),
        ("a" * 254, ["must be no more than 253 characters"]),
        ("a..b", [SUBDOMAIN_RULE]),
        ("", [SUBDOMAIN_RULE]),
    ],
)
def test_dns1123_subdomain(value: str, problems: list[str]) -> None:
    assert kubernetes_names.dns1123_subdomain(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"), [("v1", []), ("1v", [DNS1035_RULE]), ("", [DNS1035_RULE]), ("a" * 64, [TOO_LONG])]
)
def test_dns1035_label(value: str, problems: list[str]) -> None:
    assert kubernetes_names.dns1035_label(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("app", []),
        ("example.com/App_1.x", []),
        ("", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("/x", ["prefix part must be non-empty"]),
        ("x/", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("X/y", [f"prefix part {SUBDOMAIN_RULE}"]),
        ("a" * 64, [f"name part {TOO_LONG}"]),
        (
            "a/b/c",
            [f"a qualified name {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
    ],
)
def test_qualified_name(value: str, problems: list[str]) -> None:
    assert kubernetes_names.qualified_name(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"), [("", []), ("A_b.c-1", []), ("-a", [VALUE_RULE]), ("a" * 64, [TOO_LONG])]
)
def test_label_value(value: str, problems: list[str]) -> None:
    assert kubernetes_names.label_value(value) == problems


def test_problems_are_formatted_as_in_kubernetes() -> None:
    assert kubernetes_names.invalid("consumer.name", "_", kubernetes_names.dns1123_label("_")) == [
        f'consumer.name: Invalid value: "_": {LABEL_RULE}'
    ]
    assert kubernetes_names.join(["a"]) == "a"
    assert kubernetes_names.join(["a", "a"]) == "a"
    assert kubernetes_names.join(["a", "b", "a"]) == "[a, b]"
    assert kubernetes_names.join(map(str, range(100))).endswith("29, and 70 more]")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('a"b\\', '"a\\"b\\\\"'),
        ("\n\t\x00\x7f", '"\\n\\t\\x00\\x7f"'),
        ("é\u2028\U000e0001", '"é\\u2028\\U000e0001"'),
        ("x" * 400, '"' + "x" * 300 + '…"'),
    ],
)
def test_quote(value: str, shown: str) -> None:
    assert kubernetes_names.quote(value) == shown


@given(st.text(max_size=300))
def test_any_text_is_validated(value: str) -> None:
    for validate in (
        kubernetes_names.dns1123_label,
        kubernetes_names.dns1123_subdomain,
        kubernetes_names.dns1035_label,
        kubernetes_names.qualified_name,
        kubernetes_names.label_value,
    ):
        assert all(isinstance(problem, str) for problem in validate(value))
    assert kubernetes_names.quote(value).isprintable()
