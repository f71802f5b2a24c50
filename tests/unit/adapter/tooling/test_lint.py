import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from maestropy.adapter.definition import Adapter
from maestropy.adapter.desired_state import DesiredState, StatusReport
from maestropy.adapter.tooling import lint
from maestropy.sdk.work import Work
from tests.unit.adapter.samples import MAP

EXAMPLES = Path(__file__).parents[4] / "examples"
CALLS = itertools.count()
READ = lambda _: StatusReport(available=True)  # noqa: E731 - one function for every table row


def adapter_for(desired: Any) -> Adapter:
    adapter = Adapter("a")
    adapter.reconciles("Cluster")(lambda _, cluster: desired(cluster))
    return adapter


def rules(findings: list[lint.LintFinding]) -> list[str]:
    return [finding.rule for finding in findings]


def good(cluster: Any) -> Work:
    return Work(f"w-{cluster.id}").add(MAP, feedback={"status": ".status"})


@pytest.mark.parametrize(
    ("desired", "rules_found"),
    [
        pytest.param(lambda c: DesiredState(good(c), read=READ), [], id="good"),
        pytest.param(lambda _: StatusReport(available=True), [], id="no-works"),
        pytest.param(good, ["no-read"], id="no-read"),
        pytest.param(lambda c: DesiredState(Work(f"w-{c.id}").add(MAP), read=READ), ["no-feedback"], id="no-feedback"),
        pytest.param(
            lambda c: DesiredState(Work(f"w-{c.id}").add(MAP, feedback={"s": ".s"}, resource="configmap"), read=READ),
            ["singular"],
            id="singular",
        ),
        pytest.param(
            lambda c: DesiredState(Work(f"W_{c.id}").add(MAP, feedback={"s": ".s"}), read=READ), ["invalid"], id="name"
        ),
        pytest.param(
            lambda _: DesiredState(Work("w").add(MAP, feedback={"s": ".s"}), read=READ), ["names"], id="shared-name"
        ),
        pytest.param(lambda c: DesiredState([good(c), good(c)], read=READ), ["names"], id="duplicate-name"),
        pytest.param(
            lambda c: DesiredState(good(c).with_labels({"call": str(next(CALLS))}), read=READ),
            ["not-deterministic"],
            id="not-deterministic",
        ),
        pytest.param(lambda c: c.spec["release"], ["sample"], id="needs-a-sample"),
        pytest.param(lambda _: "text", ["unusable"], id="not-a-work"),
    ],
)
def test_desired_state_of_adapter_is_checked(desired: Any, rules_found: list[str]) -> None:
    assert rules(lint.adapter_findings(adapter_for(desired))) == rules_found


def test_adapter_without_handler_is_an_error() -> None:
    assert rules(lint.adapter_findings(Adapter("a"))) == ["no-function"]


def test_handler_that_fails_for_a_sample_is_an_error() -> None:
    findings = lint.adapter_findings(
        adapter_for(lambda c: c.spec["release"]), samples=[{"kind": "Cluster", "spec": {}}]
    )
    assert rules(findings) == ["fails"]


WORK = """\
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: w, annotations: {hyperfleet.io/generation: "5"}}
spec:
  workload:
    manifests:
      - apiVersion: hypershift.openshift.io/v1beta1
        kind: HostedCluster
        metadata: {name: c, namespace: clusters, annotations: {hyperfleet.io/generation: "5"}}
  manifestConfigs:
    - resourceIdentifier: {group: hypershift.openshift.io, resource: hostedclusters, name: c, namespace: clusters}
      feedbackRules: [{type: JSONPaths, jsonPaths: [{name: status, path: .status}]}]
"""


TASK = """\
schema_version: "2.0"
params: [{name: clusterId, source: event.id, required: true}]
"""
POST_ACTION = """\
post:
  post_actions:
    - name: report
      api_call: {method: METHOD, url: "/clusters/{{ .clusterId }}/statuses", body: "{}"}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(TASK, ["task"], id="task-without-status"),
        pytest.param(TASK + "post: []\n", ["loader", "task"], id="task-with-malformed-post"),
        pytest.param(TASK + POST_ACTION.replace("METHOD", "PUT"), [], id="task-with-status"),
        pytest.param(TASK + POST_ACTION.replace("METHOD", "GET"), ["task"], id="task-that-reads-statuses"),
        pytest.param(WORK, [], id="good"),
        pytest.param(WORK.replace("hostedclusters", "hostedcluster"), ["singular"], id="singular-resource"),
        pytest.param(
            WORK.replace("name: c, namespace: clusters}\n      f", "name: d}\n      f"),
            ["no-manifest"],
            id="identifier-without-manifest",
        ),
        pytest.param(
            WORK.replace('clusters, annotations: {hyperfleet.io/generation: "5"}', "clusters"),
            ["generation"],
            id="manifest-without-generation",
        ),
        pytest.param(WORK.replace('"5"}}\nspec', "5}}\nspec"), ["generation"], id="generation-is-a-number"),
        pytest.param(WORK.replace("jsonPaths:", "jsonPath:"), ["wrong-name"], id="json-path"),
        pytest.param(
            WORK.replace("feedbackRules:", "feedbackRule:"), ["wrong-name", "no-feedback"], id="feedback-rule"
        ),
        pytest.param("post:\n  method: POST\n", ["task"], id="task-posts"),
        pytest.param("observed_generation: '5'\n", ["task"], id="task-string-generation"),
        pytest.param("when: '!adapter.resourcesSkipped'\n", ["task"], id="task-skips-status"),
        pytest.param("a: [", ["unreadable"], id="not-yaml"),
    ],
)
def test_yaml_document_is_checked(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "document.yaml"
    path.write_text(text)
    assert rules(lint.document_findings(path)) == expected


def test_docs_list_every_lint_rule() -> None:
    documented_rules = set(re.findall(r'_(?:error|warning)\(\s*"([\w-]+)"', Path(lint.__file__).read_text()))
    page = (EXAMPLES.parent / "docs" / "write-an-adapter.md").read_text()
    table = page.partition("## What lint finds")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([\w-]+)`", "".join(rows))) == documented_rules
