"""Tasks in the shapes that HyperFleet ships for the local cluster: direct reads, lists, payloads by outcome."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from maestropy.adapter import Adapter
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.tooling import loading
from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet
from tests.adapter.runs import command, handled
from tests.adapter.test_tasks import TIMEOUTS, on_kubernetes

JOB_MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: probe
  namespace: "{{ .id }}-area"
  annotations: {hyperfleet.io/generation: "{{ .generation }}"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: probe, image: "probe:1"}]
"""
TASK = """\
schema_version: "2.0"
params:
- {name: id, source: event.id, required: true}
- name: found
  source: {api_call: {method: GET, url: "/clusters/{{ .id }}"}}
- {name: generation, source: found.generation}
- {name: zones, source: {expression: "found.spec.zones.distinct().sort()"}}
- name: largest
  source: {expression: "found.spec.pools.sortBy(p, p.size).map(p, p.name).reverse().slice(0, 1)"}
- {name: absent, source: {expression: found.spec.nothing.here}}
- name: leaves
  source: {expression: "found.?deleted_time.hasValue()"}
preconditions:
- name: wanted
  conditions: [{field: found.spec.paused, operator: notEquals, value: true}]
resources:
- name: area
  manifest:
    apiVersion: v1
    kind: Namespace
    metadata: {name: "{{ .id }}-area", annotations: {hyperfleet.io/generation: "{{ .generation }}"}}
  discovery: {by_name: "{{ .id }}-area"}
  lifecycle: {delete: {when: {expression: leaves}, propagationPolicy: Background}}
- name: probe
  manifest: {ref: job.yaml}
  discovery: {namespace: "{{ .id }}-area", by_selectors: {label_selector: {probe: "{{ .id }}"}}}
  lifecycle: {delete: {when: {expression: leaves}}}
post:
  payloads:
  - name: done
    when: {expression: "!adapter.resourcesSkipped"}
    build:
      adapter: "{{ .adapter.name }}"
      observed_generation: {expression: generation}
      conditions:
      - type: Applied
        status: {expression: 'has(resources.probe) ? "True" : "False"'}
        reason: {expression: 'has(resources.area) ? resources.area.metadata.name : "Pending"'}
      - type: Available
        status:
          expression: |
            resources.?probe.?status.?conditions.orValue([]).exists(c, c.type == "Complete")
              ? resources.probe.status.conditions.filter(c, c.type == "Complete")[0].status : "False"
        reason: {expression: 'resources.?probe.?status.hasValue() ? "Seen" : "Unseen"'}
      - type: Health
        status: {expression: 'adapter.?executionStatus.orValue("") == "success" ? "True" : "False"'}
        reason: {expression: 'adapter.?errorReason.orValue("") != "" ? adapter.errorReason : "Healthy"'}
      - type: Finalized
        status:
          expression: |
            leaves && ["area", "probe"].all(n, resource_states[?n].orValue("") == "confirmed_deleted")
              ? "True" : "False"
      data:
        zones: {expression: toJson(zones)}
        largest: {expression: "largest[0]"}
        absent: {expression: absent}
        fallback: {expression: absent, default: none}
  - name: skipped
    when: {expression: adapter.resourcesSkipped}
    build:
      adapter: "{{ .adapter.name }}"
      observed_generation: {expression: generation}
      conditions:
      - {type: Applied, status: "False", reason: Skipped, message: {expression: adapter.skipReason}}
      - {type: Available, status: "False", reason: Skipped}
      - {type: Health, status: "True", reason: NoErrors}
  post_actions:
  - name: tellDone
    when: {expression: "!adapter.resourcesSkipped"}
    api_call: {method: PUT, url: "/clusters/{{ .id }}/statuses", body: "{{ .done }}"}
  - name: tellSkipped
    when: {expression: adapter.resourcesSkipped}
    api_call: {method: PUT, url: "/clusters/{{ .id }}/statuses", body: "{{ .skipped }}"}
"""
SPEC = {"zones": ["b", "a", "b"], "pools": [{"name": "big", "size": 9}, {"name": "small", "size": 1}], "paused": False}
Run = Callable[[dict[str, Any]], EventOutcome]


@pytest.fixture
def converted(tmp_path: Path) -> Adapter:
    (tmp_path / "job.yaml").write_text(JOB_MANIFEST)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(yaml.safe_load(TASK)))
    name = tmp_path.name.replace("_", "-").lower()[-30:].strip("-")
    linted = command("lint", str(tmp_path / "task.yaml"))
    assert (linted.returncode, linted.stdout) == (0, "no findings\n")
    arguments = ("--name", name, "--output", str(tmp_path / "adapter.py"))
    result = command("convert", str(tmp_path / "task.yaml"), *arguments)
    assert result.returncode == 0
    assert "resources[1]: an object is found by its work" in result.stderr
    return loading.load(str(tmp_path))


@pytest.fixture(params=["maestro", "kubernetes"])
def run(
    request: pytest.FixtureRequest,
    converted: Adapter,
    fleet: RunningFleet,
    cluster: Cluster,
    hyperfleet: FakeHyperFleet,
) -> Run:
    if request.param == "maestro":
        return lambda event: handled(converted, event, fleet=fleet, api=hyperfleet, timeouts=TIMEOUTS)
    return lambda event: on_kubernetes(converted, event, cluster=cluster, api=hyperfleet)


def test_objects_are_read_directly_and_missing_data_is_null(
    run: Run, request: pytest.FixtureRequest, converted: Adapter, hyperfleet: FakeHyperFleet
) -> None:
    resource_id = f"local-{request.node.callspec.params['run'][0]}"
    created = hyperfleet.put("Cluster", resource_id, spec=SPEC)
    for _ in range(20):  # each event is a whole pass; the Job completes between two of them
        outcome = run(created)
        assert outcome.failure is None, outcome.failure
        assert outcome.status
        if outcome.status.available.status == "True":
            break
    assert outcome.status
    assert (outcome.status.applied.status, outcome.status.applied.reason) == ("True", f"{resource_id}-area")
    assert outcome.status.available.status == "True"
    assert outcome.status.data == {"zones": '["a","b"]', "largest": "big", "absent": None, "fallback": "none"}
    [note] = outcome.notes
    assert note.startswith("null is reported for absent: ")
    deleted = hyperfleet.delete(resource_id)
    for _ in range(20):
        outcome = run(deleted)
        assert outcome.failure is None, outcome.failure
        assert outcome.status
        if outcome.status.finalized.status == "True":
            break
    assert hyperfleet.condition(resource_id, converted.name, "Finalized")["status"] == "True"


def test_the_payload_of_a_skipped_pass_is_sent_instead(
    run: Run, request: pytest.FixtureRequest, hyperfleet: FakeHyperFleet
) -> None:
    resource_id = f"paused-{request.node.callspec.params['run'][0]}"
    outcome = run(hyperfleet.put("Cluster", resource_id, spec={**SPEC, "paused": True}))
    assert outcome.failure is None
    assert outcome.status
    assert outcome.status.applied.reason == "Skipped"
    assert outcome.status.applied.message == "precondition not met: wanted"
