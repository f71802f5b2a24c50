"""Reports in their three forms, and the files that nobody sees half of."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maestropy.adapter import report
from maestropy.adapter.errors import BadResults
from maestropy.adapter.report import Report, condition
from maestropy.adapter.results import Results

NOW = datetime(2026, 8, 20, 10, 0, 7, tzinfo=UTC)


def told(**changes: object) -> Report:
    given = {
        "adapter": "controlplane",
        "generation": 5,
        "applied": condition("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete"),
        "available": condition("Available", "False", "EtcdWaitingForQuorum", "Waiting for etcd to reach quorum"),
        "health": report.healthy(),
        "finalized": report.not_deleting(),
        "data": {"manifestwork": {"name": "hc-abc", "consumer": "us-east-mgmt-01"}},
        **changes,
    }
    return Report(**given)  # type: ignore[arg-type]


def test_the_status_as_the_api_takes_it() -> None:
    assert told().status(NOW) == {
        "adapter": "controlplane",
        "observed_generation": 5,
        "observed_time": "2026-08-20T10:00:07Z",
        "conditions": [
            {
                "type": "Applied",
                "status": "True",
                "reason": "AppliedManifestWorkComplete",
                "message": "Apply manifest work complete",
            },
            {
                "type": "Available",
                "status": "False",
                "reason": "EtcdWaitingForQuorum",
                "message": "Waiting for etcd to reach quorum",
            },
            {
                "type": "Health",
                "status": "True",
                "reason": "Healthy",
                "message": "Adapter execution completed successfully",
            },
            {"type": "Finalized", "status": "False", "reason": "NotDeleting", "message": ""},
        ],
        "data": {"manifestwork": {"name": "hc-abc", "consumer": "us-east-mgmt-01"}},
    }


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        pytest.param({}, "failure", "EtcdWaitingForQuorum", id="not-available"),
        pytest.param({"available": condition("Available", "True", "Ready")}, "success", "Ready", id="available"),
        pytest.param({"applied": condition("Applied", "False", "NoCrd")}, "failure", "NoCrd", id="not-applied"),
        pytest.param({"health": condition("Health", "False", "Invalid")}, "failure", "Invalid", id="not-well"),
        pytest.param({"finalized": condition("Finalized", "True", "Deleted")}, "success", "Deleted", id="finalized"),
        pytest.param({"available": condition("Available", "Unknown", "")}, "failure", "NoReasonProvided", id="silent"),
    ],
)
def test_the_result_names_what_decides(changes: dict[str, object], status: str, reason: str) -> None:
    found = told(**changes).result()
    assert (found["status"], found["reason"]) == (status, reason)
    assert found["message"]


def test_limits_of_the_reader_are_kept_without_half_a_character() -> None:
    found = told(available=condition("Available", "False", "R" * 500, "ü" * 2000)).result()
    assert len(found["reason"].encode()) <= 128
    assert len(found["message"].encode()) <= 1024
    assert found["message"].endswith("ü…")


@pytest.mark.parametrize("name", ["adapter-result.json", "adapter-report.json", ""])
def test_both_files_whatever_is_named(tmp_path: Path, name: str) -> None:
    Results(tmp_path / name if name else tmp_path).write(told())
    result = json.loads((tmp_path / "adapter-result.json").read_text())
    assert set(result) == {"status", "reason", "message", "details"}
    document = json.loads((tmp_path / "adapter-report.json").read_text())
    assert set(document) == {"conditions", "data"}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_result_that_would_be_refused_for_its_size_loses_its_details(tmp_path: Path) -> None:
    Results(tmp_path).write(told(data={"large": "x" * 2**20}))
    assert (tmp_path / "adapter-result.json").stat().st_size < 2**20
    assert json.loads((tmp_path / "adapter-report.json").read_text())["data"]["large"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (Path("/nowhere/adapter-result.json"), "the results directory /nowhere does not exist"),
        # Nobody, not even root, may write there.
        (Path("/proc/adapter-result.json"), "results cannot be written to /proc"),
    ],
    ids=["missing", "read-only"],
)
def test_a_folder_that_cannot_be_used(path: Path, sentence: str) -> None:
    with pytest.raises(BadResults, match=sentence):
        Results(path).check()


def test_an_earlier_result_is_whole_until_the_new_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Results(tmp_path).write(told())
    before = (tmp_path / "adapter-result.json").read_bytes()

    def power_cut(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", power_cut)
    with pytest.raises(BadResults, match="Input/output error"):
        Results(tmp_path).write(told(adapter="another"))
    assert (tmp_path / "adapter-result.json").read_bytes() == before
