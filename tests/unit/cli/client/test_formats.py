"""`-o`: templates select what kubectl selects, and mistakes are reported before anything is sent."""

import pytest

from maestropy.cli.client import formats, output
from maestropy.cli.client.formats import Format
from maestropy.cli.errors import UsageError

LIST = {
    "items": [
        {"id": "1", "name": "a", "labels": {"tier": "front"}, "version": 2, "tags": ["x", "y"]},
        {"id": "2", "name": "b", "version": 10},
    ],
    "total": 2,
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("{.items[*].name}", "a b", id="names"),
        pytest.param('{range .items[*]}{.name}={.version}{"\\n"}{end}', "a=2\nb=10\n", id="range"),
        pytest.param('{.items[?(@.name=="b")].id}', "2", id="filter"),
        pytest.param("{.items[0].labels}", '{"tier":"front"}', id="object-as-json"),
        pytest.param(".total", "2", id="without-braces"),
        pytest.param("total", "2", id="without-dot"),
        pytest.param("{.nothing}", "", id="missing"),
    ],
)
def test_jsonpath(template: str, expected: str) -> None:
    chosen = formats.parse(f"jsonpath={template}")
    assert output.listing(LIST, output=chosen, columns=output.CONSUMERS) == expected


def test_custom_columns_keep_unions_whole_and_show_missing_values() -> None:
    chosen = formats.parse("custom-columns=NAME:.name,TIER:.labels.tier,BOTH:.tags[0,1],V:{.version}")
    lines = output.listing(LIST, output=chosen, columns=output.CONSUMERS).splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "TIER", "BOTH", "V"],
        ["a", "front", "x,y", "2"],
        ["b", "<none>", "<none>", "10"],
    ]
    assert output.listing(LIST, output=chosen, columns=output.CONSUMERS, headers=False).startswith("a ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("tabel", "-o tabel: the output format is one of table, wide", id="unknown"),
        pytest.param("jsonpath", "-o jsonpath needs a template: -o jsonpath='{", id="no-template"),
        pytest.param("jsonpath={.items[", "JSONPath {.items[: ", id="unclosed"),
        pytest.param("custom-columns=NAME", "write it as HEAD:PATH", id="no-path"),
        pytest.param("custom-columns=NAME:.a[", "JSONPath .a[: ", id="bad-path"),
    ],
)
def test_mistake_is_a_usage_error(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        formats.parse(text)
    assert complaint in str(caught.value)


def test_headers_can_be_left_out() -> None:
    table = output.listing(LIST, output=Format("table"), columns=output.CONSUMERS, headers=False)
    assert [line.split()[:2] for line in table.splitlines()] == [["1", "a"], ["2", "b"]]
    assert output.listing({"items": []}, output=Format("table"), columns=output.CONSUMERS, headers=False) == ""
