"""A recorded run is replayed, failures included."""

import json
from pathlib import Path

import pytest

from maestropy.adapter.decide import object_status, ownership, pipeline
from maestropy.adapter.decide.effects import Apply, Await, Effect, EffectResult, Fetch, Locate, Query
from maestropy.adapter.decide.pipeline import EventOutcome, PipelineOptions
from maestropy.adapter.desired_state import DesiredState
from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.resource import parse
from maestropy.adapter.transports import dry_run, recording
from maestropy.adapter.transports.performer import drive
from maestropy.sdk import errors
from tests.unit.adapter.samples import CLUSTER, EVENT, reported, work

OPTIONS = PipelineOptions(adapter="a", handler=lambda _, __: DesiredState(work()))
RAW = {"id": "abc", "kind": "Cluster", "generation": 5, "spec": {"x": 1}}


class ConflictingPerformer:
    """Rejects a create because the work exists already."""

    async def perform(self, effect: Effect) -> EffectResult:
        stored = reported(
            ownership.with_ownership(object_status.with_generation_rules(work()), adapter="a", resource=CLUSTER),
            Applied="True",
            Available="True",
        )
        match effect:
            case Fetch(event):
                return parse(RAW, event)
            case Query(name=""):
                return []
            case Query() | Await():
                return [stored]
            case Apply():
                raise errors.AlreadyExists("it is there", doing="create work w-abc")
            case Locate():
                return "c1"
            case _:
                return None


async def test_recorded_run_with_a_failure_is_replayed(tmp_path: Path) -> None:
    recorder = recording.Recorder(ConflictingPerformer(), EVENT)
    real = await drive(pipeline.run(EVENT, OPTIONS), recorder)
    recorder.recording().save(tmp_path / "run.json")
    assert (tmp_path / "run.json").stat().st_mode & 0o077 == 0

    loaded = recording.Recording.load(tmp_path / "run.json")
    dry = dry_run.DryRun(dry_run.DryRunInputs(event=EVENT, recorded=loaded))
    replayed: EventOutcome = await drive(pipeline.run(EVENT, OPTIONS), dry)
    assert replayed == real
    assert replayed.status
    assert replayed.status.available.status == "True"
    assert dry.deviations == []
    assert [type(effect).__name__ for effect in dry.effects] == [
        "Fetch",
        "Query",
        "Locate",
        "Apply",
        "Query",
        "PutStatus",
    ]


async def test_replay_of_a_changed_adapter_says_how_it_deviates() -> None:
    recorder = recording.Recorder(dry_run.DryRun(dry_run.DryRunInputs(event=EVENT, consumer="c1")), EVENT)
    await drive(pipeline.run(EVENT, OPTIONS), recorder)
    again = work().with_labels({"tier": "front"})
    for changed, expected in (
        (work(), []),
        (again, ["this run creates work c1/w-abc, with another content than the recorded one"]),
        (work("v-abc"), ["the recorded run creates work c1/w-abc, this one creates work c1/v-abc"]),
    ):
        options = PipelineOptions(adapter="a", handler=lambda _, __: DesiredState(changed))
        dry = dry_run.DryRun(dry_run.DryRunInputs(event=EVENT, recorded=recorder.recording()))
        await drive(pipeline.run(EVENT, options), dry)
        assert [line for line in dry.deviations if "reports" not in line] == expected
        assert not expected or dry.deviations


async def test_recording_of_an_earlier_version_is_not_compared() -> None:
    recorder = recording.Recorder(ConflictingPerformer(), EVENT)
    await drive(pipeline.run(EVENT, OPTIONS), recorder)
    for entry in recorder.answers:
        entry.pop("write", None)
    dry = dry_run.DryRun(dry_run.DryRunInputs(event=EVENT, recorded=recorder.recording()))
    await drive(pipeline.run(EVENT, OPTIONS), dry)
    assert dry.deviations == []


@pytest.mark.parametrize("text", ["", "[]", '{"event": {}}', '{"event": {}, "answers": [1]}'])
def test_malformed_recording_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadAdapter, match="is not a recording"):
        recording.Recording.load(tmp_path / "run.json")
    with pytest.raises(BadAdapter, match="cannot be read"):
        recording.Recording.load(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"effect": None, "answer": None}, "there is no effect None"),
        ({"effect": "fetch", "answer": 5}, "its answer is malformed for the effect fetch"),
        ({"effect": "locate", "answer": None}, "malformed for the effect locate"),
        ({"effect": "query", "answer": ["x"]}, "malformed for the effect query"),
        ({"effect": "query", "answer": None}, "malformed for the effect query"),
        ({"effect": "apply", "answer": {"work": {}}}, "malformed for the effect apply"),
        ({"effect": "putstatus", "answer": 5}, "malformed for the effect putstatus"),
        ({"effect": "readsurroundings", "answer": {"x": 1}}, "malformed for the effect readsurroundings"),
        ({"effect": "apply", "error": 5}, "its error is malformed"),
        ({"effect": "apply", "error": {"kind": "TypeVar", "reason": 5}}, "its error is malformed"),
    ],
)
def test_damaged_recording_is_named(entry: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"event": {}, "answers": [{"effect": "query", "answer": []}, entry]}))
    with pytest.raises(BadAdapter, match=rf"is damaged: answers\[1\]: .*{message}"):
        recording.Recording.load(path)
