"""What was recorded is answered again, failures included."""

import asyncio
from pathlib import Path

import pytest
from adapter_samples import CLUSTER, EVENT, reported, work

from maestropy.adapter import dryrun, pipeline, recording, stamping
from maestropy.adapter.effects import Answer, Apply, Await, Effect, Fetch, Query
from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.perform import drive
from maestropy.adapter.pipeline import Outcome, Part
from maestropy.adapter.wish import Wish
from maestropy.sdk import errors

PART = Part(adapter="a", handler=lambda _, __: Wish(work()))
RAW = {"id": "abc", "kind": "Cluster", "generation": 5, "spec": {"x": 1}}


class World:
    """Creates only to find that somebody was faster."""

    async def perform(self, effect: Effect) -> Answer:
        mine = reported(stamping.stamped(work(), adapter="a", resource=CLUSTER), Applied="True", Available="True")
        match effect:
            case Fetch(event):
                return recording.resources.parse(RAW, event)
            case Query(name=""):
                return []
            case Query() | Await():
                return [mine]
            case Apply():
                raise errors.AlreadyExists("it is there", doing="create work w-abc")
            case _:
                return "c1"


def test_a_run_with_a_failure_in_it_is_replayed(tmp_path: Path) -> None:
    recorder = recording.Recorder(World(), EVENT)
    real = asyncio.run(drive(pipeline.run(EVENT, PART), recorder))
    recorder.recording().save(tmp_path / "run.json")
    assert (tmp_path / "run.json").stat().st_mode & 0o077 == 0

    loaded = recording.Recording.load(tmp_path / "run.json")
    show = dryrun.DryRun(dryrun.Given(event=EVENT, recorded=loaded))
    again: Outcome = asyncio.run(drive(pipeline.run(EVENT, PART), show))
    assert again == real
    assert again.report
    assert again.report.available.status == "True"
    assert [type(each).__name__ for each in show.asked] == ["Fetch", "Query", "Locate", "Apply", "Query", "Tell"]


@pytest.mark.parametrize("text", ["", "[]", '{"event": {}}', '{"event": {}, "answers": [1]}'])
def test_what_is_no_recording(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadAdapter, match="is no recording"):
        recording.Recording.load(tmp_path / "run.json")
    with pytest.raises(BadAdapter, match="cannot be read"):
        recording.Recording.load(tmp_path / "missing.json")
