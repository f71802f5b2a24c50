"""What a task may do in each phase, and what it does when something fails."""

import asyncio
import json
from typing import Any

import pytest

from maestropy.adapter import event as events
from maestropy.adapter.decide.pipeline import EventOutcome, PipelineOptions
from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.tasks import reports
from maestropy.adapter.tasks.task_adapter import TaskAdapter
from maestropy.adapter.transports import recording
from maestropy.adapter.transports.dry_run import DryRun, DryRunInputs
from maestropy.adapter.transports.performer import drive
from maestropy.sdk import errors
from tests.unit.adapter.tasks.mirrors import Api, Mirrors, TaskPerformer

CLUSTER: dict[str, Any] = {"id": "abc", "kind": "Cluster", "name": "blue", "generation": 7, "spec": {"size": 3}}
EVENT = events.parse(json.dumps({"id": "abc", "kind": "Cluster", "generation": 7, "owner_references": {"id": "me"}}))
GET_OWN = {"api_call": {"method": "GET", "url": "/api/hyperfleet/v1/clusters/{{ .id }}"}}
GET_STATUSES = {"api_call": {"method": "GET", "url": "/clusters/{{ .id }}/statuses"}}
MANIFEST = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "{{ .id }}", "annotations": {"hyperfleet.io/generation": "{{ .generation }}"}},
}
CONDITIONS: list[Any] = [
    {"type": "Applied", "status": {"expression": 'resource_states.?map.orValue("") == "unsynced" ? "True" : "False"'}},
    {"type": "Available", "status": "Unknown", "reason": "{{ .word }}"},
    {
        "type": "Health",
        "status": {"expression": 'adapter.executionStatus == "success" ? "True" : "False"'},
        "reason": {"field": "adapter.executionError.phase", "default": "Healthy"},
        "message": {"expression": "adapter.?executionError.?message.orValue(adapter.skipReason)"},
    },
    {"type": "Billed", "status": "True"},
]


def adapter(*, params: dict[str, Any] | None = None, manifest: Any = None) -> TaskAdapter:
    made = TaskAdapter("lone", config={"region": {"name": "east"}})
    made.param("id", source="event.id", required=True)
    made.param("cluster", source=GET_OWN)
    made.param("generation", source="cluster.generation", type="int")
    made.param("word", source={"expression": '"ok"'})
    for name, fields in (params or {}).items():
        made.param(name, **fields)
    made.resource("map", manifest=manifest or MANIFEST, discovery={"by_name": "{{ .id }}"})
    return made


def reporting(made: TaskAdapter, *, conditions: Any = None, **fields: Any) -> TaskAdapter:
    build = {
        "conditions": conditions or CONDITIONS,
        "observed_generation": {"expression": "generation"},
        "data": {"size": {"field": "cluster.spec.size"}},
    }
    made.payload("report", build=build)
    call = {"method": "PUT", "url": "/clusters/{{ .id }}/statuses", "body": "{{ .report }}"}
    made.post_action("send", api_call=call, **fields)
    return made


class Pass:
    """One pass of an adapter, with what it did."""

    def __init__(self, made: TaskAdapter, *, api: Api | None = None, variables: dict[str, str] | None = None) -> None:
        self.api = api or Api(CLUSTER)
        self.mirrors = Mirrors([], is_local=False)
        self.performer = TaskPerformer(self.mirrors, self.api, **(variables or {}))
        self.made = made

    def run(self) -> EventOutcome:
        options = PipelineOptions(adapter="lone", handler=self.made.handler("Cluster"), settle_seconds=0)
        return asyncio.run(drive(self.made.steps(EVENT, options), self.performer))


def values_of(made: TaskAdapter, *names: str, files: dict[str, str] | None = None, **variables: str) -> list[Any]:
    """What params resolve to, shown through the data of a status."""
    made.payload(
        "values",
        build={
            "conditions": CONDITIONS[:3],
            "observed_generation": 1,
            "data": {name: {"expression": name} for name in names},
        },
    )
    call = {"method": "PUT", "url": "/clusters/abc/statuses", "body": "{{ .values }}"}
    made.post_action("send", api_call=call)
    run = Pass(made, variables=variables)
    run.performer.files = files or {}
    outcome = run.run()
    assert outcome.failure is None, outcome.failure
    assert outcome.status
    return [outcome.status.data[name] for name in names]


def test_params_come_from_event_environment_config_file_api_and_expressions() -> None:
    made = adapter(
        params={
            "owner": {"source": "event.owner_references.id"},
            "place": {"source": "env.PLACE"},
            "other": {"source": "env.OTHER", "default": "none"},
            "region": {"source": "config.region.name"},
            "who": {"source": "adapter.name"},
            "token": {"source": {"file": {"path": "/token"}}},
            "size": {"source": "cluster.spec.size", "type": "string"},
            "flag": {"source": "env.FLAG", "type": "bool"},
            "doubled": {"source": {"expression": "cluster.spec.size * 2"}},
            "age": {"source": {"expression": 'timestamp(now()) > timestamp("2026-08-31T00:00:00Z")'}},
            "python": {"source": {"expression": lambda values: values["cluster"]["name"] + "!"}},
        }
    )
    names = ("owner", "place", "other", "region", "who", "token", "size", "flag", "doubled", "age", "python")
    values = values_of(made, *names, files={"/token": " secret\n"}, PLACE="here", FLAG="yes")
    assert values == ["me", "here", "none", "east", "lone", "secret", "3", True, 6, True, "blue!"]


def test_the_status_has_the_conditions_of_the_payload_and_the_own_ones() -> None:
    run = Pass(reporting(adapter()))
    outcome = run.run()
    assert outcome.status
    assert [(entry.type, entry.status, entry.reason) for entry in outcome.status.conditions] == [
        ("Applied", "True", ""),
        ("Available", "Unknown", "ok"),
        ("Health", "True", "Healthy"),
        ("Finalized", "False", "NotDeleting"),
        ("Billed", "True", ""),
    ]
    assert (outcome.status.generation, outcome.status.data) == (7, {"size": 3})
    assert run.mirrors.operations == ["apply ConfigMap"]


@pytest.mark.parametrize(
    ("is_deleting", "reason"), [(False, "NotDeleting"), (True, "NotReported"), (None, "NotReported")]
)
def test_finalized_that_a_task_does_not_report(is_deleting: bool | None, reason: str) -> None:
    conditions = [{"type": kind, "status": "True"} for kind in ("Applied", "Available", "Health")]
    body = json.dumps({"observed_generation": 1, "conditions": conditions})
    finalized = reports.status_of(body, adapter="a", is_deleting=is_deleting).finalized
    assert (finalized.status, finalized.reason) == ("False", reason)


def test_a_precondition_that_is_not_met_skips_resources_and_still_reports() -> None:
    made = reporting(adapter())
    made.precondition("small", conditions=[{"field": "cluster.spec.size", "operator": "lessThan", "value": 3}])
    run = Pass(made)
    outcome = run.run()
    assert run.mirrors.operations == []
    assert outcome.status
    assert outcome.status.health.message == "precondition not met: small"


def test_a_precondition_with_a_request_captures_values() -> None:
    made = reporting(adapter())
    capture = [
        {"name": "phase", "field": "{.items[?(@.adapter=='zone')].data.phase}"},
        {"name": "count", "expression": "items.size()"},
    ]
    made.precondition("zone", **GET_STATUSES, capture=capture, expression='phase == "Active" && count == 1')
    api = Api(CLUSTER, {"GET /clusters/abc/statuses": {"items": [{"adapter": "zone", "data": {"phase": "Active"}}]}})
    run = Pass(made, api=api)
    assert run.run().failure is None
    assert run.mirrors.operations == ["apply ConfigMap"]


def test_a_resource_that_is_gone_ends_the_pass_without_a_report() -> None:
    made = reporting(adapter())
    gone = errors.NotFound("no such resource", doing="read")
    made.precondition("zone", **GET_STATUSES, expression="true")
    for api in (Api({}), Api(CLUSTER, {"GET /clusters/abc/statuses": gone})):
        run = Pass(made, api=api)
        outcome = run.run()
        assert (outcome.status, outcome.failure, api.statuses, run.mirrors.operations) == (None, None, [], [])


def test_a_required_param_without_a_value_ends_the_event_without_a_report() -> None:
    made = reporting(adapter(params={"place": {"source": "event.place", "required": True}}))
    run = Pass(made)
    outcome = run.run()
    assert outcome.failure
    assert outcome.failure.message == "event.place has no value"
    assert not outcome.is_retryable
    assert run.api.statuses == []


def test_an_api_that_is_away_lets_the_event_be_delivered_again() -> None:
    made = reporting(adapter(params={"others": {"source": GET_STATUSES}}))
    away = errors.Unavailable("503", doing="read")
    assert Pass(made, api=Api(CLUSTER, {"GET /clusters/abc/statuses": away})).run().is_retryable


def test_a_manifest_without_the_generation_fails_the_phase_and_is_reported() -> None:
    manifest = {**MANIFEST, "metadata": {"name": "{{ .id }}"}}
    run = Pass(reporting(adapter(manifest=manifest)))
    outcome = run.run()
    assert outcome.failure
    assert outcome.failure.message == "missing hyperfleet.io/generation annotation"
    assert run.api.statuses[0].health.reason == "resources"


def test_a_key_of_a_rendered_manifest_that_is_a_number_becomes_a_text() -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {json.dumps(MANIFEST['metadata'])}\ndata:\n  80: http\n"
    run = Pass(adapter(manifest=text))
    outcome = run.run()
    assert outcome.failure is None, outcome.failure
    (work,) = run.mirrors.works.values()
    assert work.validate().manifest_work.manifests[0]["data"] == {"80": "http"}


def test_a_failed_apply_ends_the_phase_and_later_resources_are_not_applied() -> None:
    made = adapter(manifest={**MANIFEST, "metadata": {"name": "x"}})
    made.resource("later", manifest=MANIFEST, discovery={"by_name": "x"})
    run = Pass(reporting(made))
    assert run.run().failure
    assert run.mirrors.operations == []


def test_a_status_without_a_mandatory_condition_is_not_sent() -> None:
    run = Pass(reporting(adapter(), conditions=CONDITIONS[:2]))
    outcome = run.run()
    assert outcome.failure
    assert outcome.failure.message == (
        "missing mandatory condition 'Health': all adapters must report Available, Applied, and Health"
    )
    assert run.api.statuses == []


def test_an_action_of_a_skipped_payload_is_skipped_and_a_false_when_too() -> None:
    made = reporting(adapter(), when={"expression": "false"})
    made.payload("never", build={}, when={"expression": "adapter.resourcesSkipped"})
    url = "/clusters/{{ .id }}/notes"
    made.post_action("sendNever", api_call={"method": "POST", "url": url, "body": "{{ .never }}"})
    made.post_action("note", api_call={"method": "POST", "url": url, "body": '{"a": "{{ .word }}"}'})
    run = Pass(made, api=Api(CLUSTER, {"POST /clusters/abc/notes": None}))
    outcome = run.run()
    assert outcome.status
    assert outcome.status.available.reason == "NotReported"
    assert run.api.statuses == []
    assert [call.body for call in run.api.calls] == [{"a": "ok"}]


def test_a_payload_that_cannot_be_built_lets_no_action_run() -> None:
    made = reporting(adapter())
    made.payload("broken", build={"x": {"expression": "nothing(1)"}})
    run = Pass(made)
    outcome = run.run()
    assert outcome.failure
    assert "undeclared reference to 'nothing'" in outcome.failure.message
    assert run.api.statuses == []


@pytest.mark.parametrize("expression", ["nothing.at.all", "resources.map.metadata.name", "cluster.name > 1"])
def test_an_expression_of_a_payload_without_data_is_null_and_noted(expression: str) -> None:
    made = reporting(
        adapter(), conditions=[*CONDITIONS, {"type": "Other", "status": "True", "reason": {"expression": expression}}]
    )
    run = Pass(made)
    outcome = run.run()
    assert outcome.failure is None
    assert run.api.statuses[0].others[-1].reason == ""
    [note] = outcome.notes
    assert note.startswith(f"null is reported for {expression}: ")


def test_a_default_takes_the_place_of_an_expression_without_data() -> None:
    entry = {"type": "Other", "status": "True", "reason": {"expression": "nothing.at.all", "default": "NotYet"}}
    run = Pass(reporting(adapter(), conditions=[*CONDITIONS, entry]))
    outcome = run.run()
    assert run.api.statuses[0].others[-1].reason == "NotYet"
    assert outcome.notes == ()


@pytest.mark.parametrize(("transport", "is_seen"), [("", False), ("far", True)], ids=["local", "remote"])
def test_only_a_remote_resource_has_a_placeholder_before_it_is_read_back(transport: str, *, is_seen: bool) -> None:
    reason = {"expression": 'has(resources.map) ? "Seen" : "Unseen"'}
    made = adapter()
    made._document["resources"][0] |= {"transport": transport} if transport else {}
    run = Pass(reporting(made, conditions=[*CONDITIONS, {"type": "Other", "status": "True", "reason": reason}]))
    outcome = run.run()
    assert outcome.failure is None
    assert run.api.statuses[0].others[-1].reason == ("Seen" if is_seen else "Unseen")


def test_a_run_can_be_recorded_and_replayed_without_the_contents_of_files(tmp_path: Any) -> None:
    made = reporting(adapter(params={"token": {"source": {"file": {"path": "/token"}}}}))
    run = Pass(made)
    run.performer.files = {"/token": "secret"}
    recorder = recording.Recorder(run.performer, EVENT)
    options = PipelineOptions(adapter="lone", handler=made.handler("Cluster"), settle_seconds=0)
    outcome = asyncio.run(drive(made.steps(EVENT, options), recorder))
    path = tmp_path / "run.json"
    recorder.recording().save(path)
    assert "secret" not in path.read_text()
    dry = DryRun(DryRunInputs(event=EVENT, recorded=recording.Recording.load(path)))
    replayed = asyncio.run(drive(made.steps(EVENT, options), dry))
    assert replayed.status == outcome.status


def test_a_task_with_load_errors_says_all_of_them() -> None:
    made = TaskAdapter("bad")
    made.param("event", source="event.id")
    made.resource("a", manifest={"apiVersion": "v1"}, discovery={})
    with pytest.raises(BadAdapter) as caught:
        _ = made.task
    assert "has 3 errors" in str(caught.value)
