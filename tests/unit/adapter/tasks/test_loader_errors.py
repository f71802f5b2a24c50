"""Every error that HyperFleet's loader reports about a task or deployment file is reported, with field and remedy."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from maestropy.adapter.tasks.load import deployment, task_file
from maestropy.adapter.tooling import lint
from tests.unit.adapter.tasks.task_documents import DEPLOYMENT, changed, task

GET = {"method": "GET", "url": "/x"}

TASK_ERRORS: list[tuple[str, Any, str, str]] = [
    # Strict YAML: names and types of fields.
    ("param", [], "param", "field param not found; did you mean params?"),
    ("resources/0/order", 1, "resources[0].order", "field order not found"),
    ("params", {}, "params", "must be a list"),
    ("params/0/required", "perhaps", "params[0].required", "must be true or false"),
    # The version of the schema.
    ("schema_version", 2.0, "schema_version", 'schema_version must be a string containing "2.0"'),
    ("schema_version", "", "schema_version", 'schema_version must be "2.0"'),
    ("schema_version", "2.1", "schema_version", 'schema_version "2.1" is unsupported; use "2.0"'),
    # Params.
    ("params/0/name", ..., "params[0].name", "name is required"),
    ("params/0/name", "event", "params[0].name", '"event" is a reserved variable name (reserved: adapter, config, env'),
    ("params/0/name", "resource_states", "params[0].name", '"resource_states" is a reserved variable name'),
    ("params/0/source", ..., "params[0].source", "source is required"),
    ("params/0/source", " ", "params[0].source", "source is required"),
    ("params/0/source", ["event.id"], "params[0].source", "expected string or mapping, got !!seq"),
    ("params/0/source", {}, "params[0].source", "mapping must contain one of 'api_call', 'expression', or 'file'"),
    (
        "params/0/source",
        {"api_call": GET, "expression": "1"},
        "params[0].source",
        "only one of 'api_call', 'expression', or 'file' may be set",
    ),
    ("params/0/source", {"expression": " "}, "params[0].source", "expression must not be empty"),
    ("params/0/source", {"file": {"trim": True}}, "params[0].source.file.path", "path is required for file source"),
    ("params/0/source", {"api_call": {"url": "/x"}}, "params[0].source.api_call.method", "method is required"),
    ("params/0/source", {"api_call": {"method": "GET"}}, "params[0].source.api_call.url", "url is required"),
    (
        "params/0/source",
        {"api_call": {"method": "get", "url": "/x"}},
        "params[0].source.api_call.method",
        '"get" is invalid (allowed: GET, POST, PUT, PATCH, DELETE)',
    ),
    (
        "params/0/source",
        {"api_call": {"method": "GET", "url": "/{{ .generation }}"}},
        "params[0].source.api_call.url",
        'undefined template variable "generation"',
    ),
    ("params/3/source", {"expression": "a &&"}, "params[3].source.expression", "CEL parse error: "),
    # Preconditions.
    ("preconditions", [{"expression": "true"}], "preconditions[0].name", "name is required"),
    (
        "preconditions",
        [{"name": "is-ready", "expression": "true"}],
        "preconditions[0].name",
        "must start with lowercase letter and contain only letters, numbers, underscores (no hyphens)",
    ),
    ("preconditions", [{"name": "a"}], "preconditions[0]", "must specify api_call, expression, conditions"),
    ("preconditions", [{"name": "a", "expression": "(1"}], "preconditions[0].expression", "CEL parse error: "),
    (
        "preconditions",
        [{"name": "event", "api_call": GET}],
        "preconditions[0].name",
        '"event" is a reserved variable name',
    ),
    (
        "preconditions",
        [{"name": "a", "api_call": GET, "capture": [{"name": "config", "field": "x"}]}],
        "preconditions[0].capture[0].name",
        '"config" is a reserved variable name',
    ),
    (
        "preconditions",
        [{"name": "a", "api_call": GET, "capture": [{"name": "b"}]}],
        "preconditions[0].capture[0]",
        "must have either 'field' or 'expression' set",
    ),
    (
        "preconditions",
        [{"name": "a", "api_call": GET, "capture": [{"name": "b", "field": "x", "expression": "x"}]}],
        "preconditions[0].capture[0]",
        "'field' and 'expression' are mutually exclusive",
    ),
    (
        "preconditions",
        [{"name": "a", "conditions": [{"field": "x", "operator": "notExists"}]}],
        "preconditions[0].conditions[0].operator",
        'invalid operator "notExists", must be one of: equals, notEquals, in, notIn, contains, greaterThan',
    ),
    (
        "preconditions",
        [{"name": "a", "conditions": [{"field": "x"}]}],
        "preconditions[0].conditions[0].operator",
        "operator is required",
    ),
    (
        "preconditions",
        [{"name": "a", "conditions": [{"field": "x", "operator": "in", "value": "y"}]}],
        "preconditions[0].conditions[0]",
        'value must be a list for operator "in"',
    ),
    (
        "preconditions",
        [{"name": "a", "conditions": [{"field": "x", "operator": "exists", "value": 1}]}],
        "preconditions[0].conditions[0]",
        'value/values should not be set for operator "exists"',
    ),
    (
        "preconditions",
        [{"name": "a", "conditions": [{"field": "x", "operator": "equals"}]}],
        "preconditions[0].conditions[0]",
        'value is required for operator "equals"',
    ),
    (
        "preconditions",
        [{"name": "a", "conditions": [{"field": "x", "operator": "in", "value": [1], "values": [2]}]}],
        "preconditions[0].conditions[0]",
        "condition has both 'value' and 'values' keys; use only one",
    ),
    # Resources.
    ("resources/0/name", "my-space", "resources[0].name", "must start with lowercase letter"),
    ("resources/0/name", "settings", "resources", "contains duplicate name values"),
    ("resources/0/manifest", ..., "resources[0].manifest", "manifest is required"),
    ("resources/0/manifest", {"ref": ""}, "resources[0].manifest.ref", "manifest ref cannot be empty"),
    ("resources/0/manifest/kind", "{{ .kind }}", "resources[0].manifest", "kind must be a literal value"),
    ("resources/0/manifest/kind", ..., "resources[0].manifest", "kind is required"),
    (
        "resources/1/manifest",
        "apiVersion: v1\nkind: {{ .clusterId }}\n",
        "resources[1].manifest",
        "line 2: kind must be a literal value",
    ),
    (
        "resources/1/manifest",
        "apiVersion: v1\n{{ if .clusterId }}\nkind: ConfigMap\n{{ end }}\n",
        "resources[1].manifest",
        "line 3: kind must be a literal value",
    ),
    (
        "resources/1/manifest",
        "apiVersion: v1\nkind: ConfigMap\napiVersion: v2\n",
        "resources[1].manifest",
        "line 3: apiVersion is set more than once",
    ),
    (
        "resources/0/manifest/metadata/name",
        "{{ .nothing }}",
        "resources[0].manifest",
        'undefined template variable "nothing"',
    ),
    ("resources/0/manifest/metadata/name", "{{ if }", "resources[0].manifest", "template: "),
    ("resources/0/discovery", ..., "resources[0].discovery", "discovery is required"),
    ("resources/0/discovery", {}, "resources[0].discovery", "must have either 'by_name' or 'by_selectors' set"),
    (
        "resources/0/discovery",
        {"by_name": "a", "by_selectors": {"label_selector": {"a": "b"}}},
        "resources[0].discovery",
        "'by_name' and 'by_selectors' are mutually exclusive",
    ),
    (
        "resources/0/discovery",
        {"by_selectors": {"label_selector": {}}},
        "resources[0].discovery.by_selectors.label_selector",
        "must have at least 1 element(s)",
    ),
    (
        "resources/0/discovery/by_name",
        "{{ .nothing }}",
        "resources[0].discovery.by_name",
        'undefined template variable "nothing"',
    ),
    (
        "resources/0/lifecycle",
        {"create": {}},
        "resources[0].lifecycle.create.when.expression",
        "lifecycle.create.when.expression is required when lifecycle.create is configured",
    ),
    (
        "resources/0/lifecycle",
        {"delete": {}},
        "resources[0].lifecycle.delete.when.expression",
        "lifecycle.delete.when.expression is required: without it the resource will never be deleted",
    ),
    (
        "resources/0/lifecycle/delete/propagationPolicy",
        "Now",
        "resources[0].lifecycle.delete.propagationPolicy",
        'invalid propagationPolicy "Now": must be one of Background, Foreground, Orphan',
    ),
    (
        "resources/0/lifecycle/delete/when/expression",
        "is_deleting &&",
        "resources[0].lifecycle.delete.when.expression",
        "CEL parse error: ",
    ),
    # Where resources go.
    ("resources/0/transport", None, "resources[0].transport", "must name a transport"),
    ("resources/0/transport", {"client": "maestro"}, "resources[0].transport", "this is a v1 configuration shape; "),
    ("resources/0/nested_discoveries", [], "resources[0].nested_discoveries", "this is a v1 configuration shape; "),
    (
        "schema_version",
        ...,
        "resources[0].transport",
        'schema_version is required for named transport references; use "2.0"',
    ),
    (
        "resources/0/transport",
        "near",
        "resources[0].transport",
        'references unknown transport "near"; available: [far kubernetes]',
    ),
    (
        "resources/0/manifest/kind",
        "Secret",
        "resources[0]",
        'manifest GVK v1/Secret has no resource_plurals mapping in transport "far"',
    ),
    (
        "resources/0/discovery",
        {"by_selectors": {"label_selector": {"a": "b"}}},
        "resources[0].lifecycle.delete",
        "selector-based lifecycle deletion is unsupported for remote transport; use discovery.by_name",
    ),
    (
        "resources/0/recreate_on_change",
        True,
        "resources[0].recreate_on_change",
        "recreate_on_change is unsupported for remote transport",
    ),
    ("params/0/name", "id", "resources[0]", 'transport "far" target_cluster uses undefined variable "clusterId"'),
    # Payloads and actions.
    ("post/payloads/0/name", ..., "post.payloads[0].name", "name is required"),
    ("post/payloads/0/name", "adapter", "post.payloads[0].name", '"adapter" is a reserved variable name'),
    ("post/payloads/0/build", ..., "post.payloads[0]", "either 'build' or 'build_ref' must be set"),
    ("post/payloads/0/build_ref", "x", "post.payloads[0]", "'build' and 'build_ref' are mutually exclusive"),
    ("post/payloads/0/build/adapter", "{{ .no }}", "post.payloads[0].build.adapter", "undefined template variable"),
    (
        "post/payloads/0/build/observed_generation",
        {"expression": "1 +"},
        "post.payloads[0].build.observed_generation.expression",
        "CEL parse error: ",
    ),
    ("post/payloads/0/when", {"expression": "("}, "post.payloads[0].when.expression", "CEL parse error: "),
    ("post/payloads/0/when", {}, "post.payloads[0].when.expression", "expression is required"),
    ("post/post_actions/0/name", "send-it", "post.post_actions[0].name", "must start with lowercase letter"),
    ("post/post_actions/0/when", {"expression": "("}, "post.post_actions[0].when.expression", "CEL parse error: "),
    ("post/post_actions/0/api_call/url", "/{{ .no }}", "post.post_actions[0].api_call.url", "undefined template"),
]

DEPLOYMENT_ERRORS: list[tuple[str, Any, str]] = [
    ("adapter/name", ..., "adapter.name: adapter.name is required"),
    ("clients/maestro", {}, "clients.maestro: clients.maestro cannot be configured when transports are set"),
    ("clients/hyperfleet_api/auth", {}, "auth.token_path: token_path must be set when auth is configured"),
    (
        "clients/hyperfleet_api/auth",
        {"token_path": "token"},
        'auth.token_path: token_path must be an absolute path, got "token"',
    ),
    (
        "clients/hyperfleet_api/auth",
        {"token_path": "/token", "token_cache_ttl": "-1s"},
        "token_cache_ttl must not be negative",
    ),
    ("stores/desires/type", "etcd", 'type "etcd" is unsupported (supported: memory, redis)'),
    ("stores/desires/url", ..., "url is required for redis store"),
    ("stores/desires/url", "http://x", "url is invalid for redis store"),
    ("stores/desires/url", "redis://a:b@x", "url must use rediss:// when credentials are configured"),
    ("stores/desires/type", "memory", "url is not valid for memory store"),
    ("stores/DESIRES", {"type": "memory"}, 'stores.DESIRES and stores.desires resolve to the same name "desires"'),
    ("stores/other", {"type": "memory"}, "stores.other: is not referenced by any remote transport"),
    ("transports/far/type", "grpc", 'type "grpc" is unsupported (supported: kubernetes, remote)'),
    ("transports/far/type", "kubernetes", "local Kubernetes transport cannot configure remote routing"),
    ("transports/kubernetes", {"type": "remote"}, "name kubernetes is reserved for local Kubernetes"),
    ("transports/far/store", ..., "store is required for remote transport"),
    ("transports/far/store", "nowhere", 'store references unknown store "nowhere"'),
    ("transports/far/target_cluster", ..., "target_cluster is required for remote transport"),
    ("transports/far/target_cluster", "A_B", "target_cluster must be a Kubernetes DNS-1123 label"),
    ("transports/far/resource_plurals", {}, "resource_plurals is required for remote transport"),
    ("transports/far/resource_plurals", {"Pod": "pods"}, 'key "Pod" must be a static apiVersion/Kind'),
    ("transports/far/resource_plurals", {"v1/Pod": "Pods"}, '["v1/Pod"] must be a Kubernetes DNS-1035 label'),
]


REPORT = 'post: {post_actions: [{name: report, api_call: {method: PUT, url: "/clusters/1/statuses", body: "{}"}}]}'
"""A task without a request that sends a status has a finding of its own."""


def findings(folder: Path, document: dict[str, Any]) -> list[str]:
    path = folder / "task.yaml"
    path.write_text(yaml.safe_dump(document))
    (folder / "adapter-config.yaml").write_text(yaml.safe_dump(DEPLOYMENT))
    return [finding.message for finding in lint.document_findings(path) if finding.level == "error"]


def test_a_task_without_mistakes_has_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path, task()) == []
    assert lint.document_findings(tmp_path / "adapter-config.yaml") == []


@pytest.mark.parametrize(
    ("path", "value", "field", "message"), TASK_ERRORS, ids=[f"{row[0]}-{row[3][:30]}" for row in TASK_ERRORS]
)
def test_an_error_of_a_task_names_the_field_and_the_remedy(path: str, value: Any, field: str, message: str) -> None:
    problems = task_file.check(changed(task(), path, value), deployment_file=DEPLOYMENT)
    reported = [str(problem) for problem in problems if problem.level == "error"]
    matching = [line for line in reported if line.startswith(f"{field}: ") and message in line]
    assert matching, reported
    assert all(problem.remedy for problem in problems)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("gone.yaml", 'referenced file "gone.yaml" does not exist (resolved to '),
        (".", 'referenced path "." is a directory, not a file'),
    ],
)
def test_a_file_that_a_task_refers_to_must_exist(tmp_path: Path, reference: str, message: str) -> None:
    reported = findings(tmp_path, changed(task(), "resources/0/manifest", {"ref": reference}))
    assert any(line.startswith(f"resources[0].manifest.ref: {message}") for line in reported), reported


@pytest.mark.parametrize(
    ("path", "value", "message"), DEPLOYMENT_ERRORS, ids=[f"{row[0]}-{row[2][:30]}" for row in DEPLOYMENT_ERRORS]
)
def test_an_error_of_a_deployment_file_is_reported(path: str, value: Any, message: str) -> None:
    problems = list(deployment.problems(changed(DEPLOYMENT, path, value)))
    assert any(message in str(problem) for problem in problems), problems
    assert all(problem.remedy for problem in problems)


def test_a_field_that_is_given_twice_is_reported_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text('schema_version: "2.0"\nparams: []\nparams: []\n')
    assert 'params: line 3: mapping key "params" already defined at line 2; keep one of the two' in [
        str(problem) for problem in task_file.read(path).problems
    ]


def test_a_repeated_field_hides_no_other_finding(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(
        """\
schema_version: "2.0"
params:
- {name: clusterId, source: event.id}
bogus: 1
params:
- {name: generation, source: event.generation}
resources:
- name: space
  manifest:
    apiVersion: v1
    kind: Namespace
    metadata: {name: "a-{{ .clusterId }}", annotations: {hyperfleet.io/generation: "{{ .generation }}"}}
    spec: {a: 1, a: 2}
  discovery: {by_name: "a-{{ .clusterId }}"}
"""
        + REPORT
    )
    found = lint.document_findings(path)
    assert [finding.message.partition(";")[0] for finding in found] == [
        'params: line 5: mapping key "params" already defined at line 2',
        'resources[0].manifest.spec.a: line 13: mapping key "a" already defined at line 13',
        "bogus: field bogus not found",
    ]
    assert {finding.rule for finding in found} == {"loader"}


@pytest.mark.parametrize(
    ("member", "found"),
    [
        pytest.param(
            "labels: {clock: 1:30}", ['resource space: error: metadata.labels: Invalid value: "1:30"'], id="label"
        ),
        pytest.param(
            "labels: {a: 'x:{{ .id }}'}", ['resource space: error: metadata.labels: Invalid value: "x:1"'], id="part"
        ),
        pytest.param("labels: {a: '{{ .id }}', b: 'x {{- .id -}} y'}", [], id="templates"),
        pytest.param("labels: {a: '{{ if .id }}a b{{ end }}'}", [], id="condition"),
        pytest.param(
            "x: 18446744073709551615",
            ["resource space: error: spec.workload.manifests[0].metadata.x is an"],
            id="unsigned",
        ),
    ],
)
def test_lint_rejects_the_works_that_a_run_rejects(member: str, found: list[str], tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(
        f"""\
schema_version: "2.0"
params:
- {{name: id, source: event.id, default: 18446744073709551615}}
resources:
- name: space
  manifest:
    apiVersion: v1
    kind: Namespace
    metadata: {{name: "a-{{{{ .id }}}}", {member}, annotations: {{hyperfleet.io/generation: "1"}}}}
  discovery: {{by_name: "a-{{{{ .id }}}}"}}
"""
        + REPORT
    )
    lines = [str(finding).removeprefix(f"{path}: ") for finding in lint.document_findings(path)]
    assert len(lines) == len(found), lines
    for line, beginning in zip(lines, found, strict=True):
        assert line.startswith(beginning)
        assert line.endswith("[invalid]")


def test_merge_keys_bring_values_of_the_types_of_the_fields(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(
        """\
schema_version: "2.0"
params:
- &base {name: a, source: event.id, required: yes, description: 0123}
- {<<: *base, name: b}
- {<<: [*base, {type: string}], name: c, required: off}
"""
    )
    read = task_file.read(path)
    assert read.errors == ()
    assert [(param["required"], param["description"]) for param in read.document["params"]] == [
        (True, "0123"), (True, "0123"), (False, "0123"),
    ]  # fmt: skip


def test_a_required_environment_variable_must_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    param = {"name": "region", "source": "env.TASK_REGION", "required": True}
    document = task()
    document["params"].append(param)
    assert any("required environment variable TASK_REGION is not set" in line for line in findings(tmp_path, document))
    monkeypatch.setenv("TASK_REGION", "east")
    assert findings(tmp_path, document) == []


def test_a_task_without_a_version_is_only_warned_about_and_keeps_the_old_shape(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    metadata = {"name": "a", "namespace": "default", "annotations": {"hyperfleet.io/generation": "1"}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    resource = {"name": "a", "transport": {"client": "kubernetes"}, "manifest": manifest, "discovery": {"by_name": "a"}}
    path.write_text(yaml.safe_dump({"resources": [resource]}) + REPORT)
    assert [finding.level for finding in lint.document_findings(path)] == ["warning"]


def test_a_status_that_the_api_would_reject_is_warned_about(tmp_path: Path) -> None:
    document = changed(task(), "post/payloads/0/build/conditions/2", ...)
    document = changed(document, "post/payloads/0/build/observed_generation", "{{ .generation }}")
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(document))
    warnings = [finding.message for finding in lint.document_findings(path) if finding.level == "warning"]
    assert any("a status without Health is rejected by the API (400)" in line for line in warnings)
    assert any("observed_generation: a text, and the API expects a number" in line for line in warnings)


def test_fields_are_read_by_their_type_as_go_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(
        """\
schema_version: "2.0"
params:
- {name: port, source: event.id, default: 0123, required: yes, description: 1e3}
- {name: text, source: {api_call: {method: GET, url: /x, timeout: 010, retry_attempts: 1e1}}, required: off}
post:
  payloads:
  - {name: status, build: {a: 1_000, b: yes, c: 0x1F, on: 1e3}}
"""
    )
    read = task_file.read(path)
    assert read.errors == ()
    port, text = read.document["params"]
    assert port == {"name": "port", "source": "event.id", "default": 83, "required": True, "description": "1e3"}
    assert text["source"]["api_call"] == {"method": "GET", "url": "/x", "timeout": "010", "retry_attempts": 10}
    assert text["required"] is False
    assert read.document["post"]["payloads"][0]["build"] == {"a": 1000, "b": "yes", "c": 31, "on": 1000.0}


def test_a_referenced_payload_with_a_repeated_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "status.yaml").write_text("a: 1\na: 2\n")
    document = changed(task(), "post/payloads/0/build", ...)
    document = changed(document, "post/payloads/0/build_ref", "status.yaml")
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(document))
    assert any("line 2: the key a is there twice" in str(problem) for problem in task_file.read(path).errors)
