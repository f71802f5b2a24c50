"""A recorded run is replayed, failures included."""

from pathlib import Path

import pytest

from maestropy.adapter.decide import object_status, ownership, pipeline
from maestropy.adapter.decide.effects import Apply, Await, Effect, EffectResult, Fetch, Query
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
            case _:
                return "c1"


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
    assert [type(effect).__name__ for effect in dry.effects] == [
        "Fetch",
        "Query",
        "Locate",
        "Apply",
        "Query",
        "PutStatus",
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"event": {}}', '{"event": {}, "answers": [1]}'])
def test_malformed_recording_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadAdapter, match="is not a recording"):
        recording.Recording.load(tmp_path / "run.json")
    with pytest.raises(BadAdapter, match="cannot be read"):
        recording.Recording.load(tmp_path / "missing.json")
