"""Texts of tasks are rendered as Go's templates render them."""

from typing import Any

import pytest

from maestropy.adapter.tasks.language import go_template
from maestropy.adapter.tasks.language.go_functions import TemplateError

NOW = "2026-03-04T05:06:07+00:00"
VALUES: dict[str, Any] = {
    "name": "Abc",
    "count": 3,
    "half": 0.5,
    "on": True,
    "empty": "",
    "nets": [{"id": "a"}, {"id": "b"}],
    "labels": {"z": 1, "a": 2},
    "cluster": {"spec": {"region": "east"}},
}

RENDERED = [
    ("plain", "plain"),
    ("{{ .name }}", "Abc"),
    ("{{.name | lower}}-{{ .count }}", "abc-3"),
    ("{{ .cluster.spec.region | upper | quote }}", '"EAST"'),
    ('{{ default "x" .empty }}', "x"),
    ('{{ .empty | default "x" }}', "x"),
    ("{{ .half }} {{ .on }} {{ .labels }}", "0.5 true map[a:2 z:1]"),
    ("{{ if .on }}yes{{ else }}no{{ end }}", "yes"),
    ("{{ if .empty }}yes{{ else if eq .count 3 }}three{{ else }}no{{ end }}", "three"),
    ('{{ if and .on (ne .name "x") }}both{{ end }}', "both"),
    ("{{ range $i, $n := .nets }}{{ $i }}={{ $n.id }};{{ end }}", "0=a;1=b;"),
    ("{{ range .nets }}{{ .id }}{{ end }}", "ab"),
    ("{{ range $k, $v := .labels }}{{ $k }}{{ $v }}{{ end }}", "a2z1"),
    ("{{ with .cluster.spec }}{{ .region }} {{ $.name }}{{ end }}", "east Abc"),
    ("{{ $x := .count }}{{ $x }}", "3"),
    ("a {{- /* no */ -}} b", "ab"),
    ("a\n{{- if .on }}\nb\n{{- end }}", "a\nb"),
    ("{{/* a comment */}}x", "x"),
    ('{{ now | date "2006-01-02T15:04:05Z07:00" }}', "2026-03-04T05:06:07Z"),
    ('{{ now | date "Mon Jan 2 15:04 2006" }}', "Wed Mar 4 05:06 2026"),
    ('{{ printf "%s/%d" .name .count }}', "Abc/3"),
    ("{{ index .nets 1 }}", "map[id:b]"),
    ('{{ replace .name "b" "x" }}', "Axc"),
    ('{{ int "7" }}', "7"),
    ("{{ `raw` }}", "raw"),
]
FAILING = [
    ("{{ .missing }}", 'map has no entry for key "missing"'),
    ("{{ .name.more }}", "can't evaluate field more"),
    ("{{ if .on }}", "has no {{ end }}"),
    ("{{ end }}", "unexpected {{ end }}"),
    ("{{ nothing 1 }}", 'function "nothing" not defined'),
    ("{{ .name", "unclosed action"),
    ("{{ lower .count }}", "error calling lower"),
    ("{{ $x }}", "undefined variable"),
    ('{{ template "x" }}', "not supported"),
    ("{{ (1 }}", "unclosed left paren"),
    ("{{ }}", "missing value for command"),
]


@pytest.mark.parametrize(("template", "text"), RENDERED)
def test_a_template_is_rendered_as_go_does(template: str, text: str) -> None:
    assert go_template.render(template, VALUES, now=NOW) == text


@pytest.mark.parametrize(("template", "problem"), FAILING)
def test_a_template_that_go_rejects_is_rejected(template: str, problem: str) -> None:
    with pytest.raises(TemplateError) as caught:
        go_template.render(template, VALUES, now=NOW)
    assert problem in str(caught.value)


def test_a_range_without_end_is_bounded() -> None:
    inner: Any = [0] * 60
    for _ in range(3):
        inner = [inner] * 60
    with pytest.raises(TemplateError, match="times"):
        go_template.render("{{ range .a }}" + "{{ range . }}" * 3 + "x" + "{{ end }}" * 4, {"a": inner}, now=NOW)
