"""An adapter status in its three forms, and the atomic result files."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maestropy.adapter.decide import adapter_status
from maestropy.adapter.decide.adapter_status import AdapterStatus, condition
from maestropy.adapter.errors import BadResults
from maestropy.adapter.results import Results

NOW = datetime(2026, 8, 20, 10, 0, 7, tzinfo=UTC)


def status_with(**changes: object) -> AdapterStatus:
    fields = {
        "adapter": "controlplane",
        "generation": 5,
        "applied": condition("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete"),
        "available": condition("Available", "False", "EtcdWaitingForQuorum", "Waiting for etcd to reach quorum"),
        "health": adapter_status.healthy(),
        "finalized": adapter_status.not_deleting(),
        "data": {"manifestwork": {"name": "hc-abc", "consumer": "us-east-mgmt-01"}},
        **changes,
    }
    return AdapterStatus(**fields)  # type: ignore[arg-type]


def test_status_body_of_hyperfleet_api() -> None:
    assert status_with().to_api(NOW) == {
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
        pytest.param({"health": condition("Health", "False", "Invalid")}, "failure", "Invalid", id="not-healthy"),
        pytest.param({"finalized": condition("Finalized", "True", "Deleted")}, "success", "Deleted", id="finalized"),
        pytest.param(
            {"available": condition("Available", "Unknown", "")}, "failure", "NoReasonProvided", id="no-reason"
        ),
    ],
)
def test_result_has_the_decisive_condition(changes: dict[str, object], status: str, reason: str) -> None:
    result = status_with(**changes).to_result()
    assert (result["status"], result["reason"]) == (status, reason)
    assert result["message"]


def test_long_reason_and_message_are_cut_at_a_character() -> None:
    result = status_with(available=condition("Available", "False", "R" * 500, "ü" * 2000)).to_result()
    assert len(result["reason"].encode()) <= 128
    assert len(result["message"].encode()) <= 1024
    assert result["message"].endswith("ü…")


@pytest.mark.parametrize("name", ["adapter-result.json", "adapter-report.json", ""])
def test_both_files_are_written_for_any_results_path(tmp_path: Path, name: str) -> None:
    Results(tmp_path / name if name else tmp_path).write(status_with())
    result = json.loads((tmp_path / "adapter-result.json").read_text())
    assert set(result) == {"status", "reason", "message", "details"}
    document = json.loads((tmp_path / "adapter-report.json").read_text())
    assert set(document) == {"conditions", "data"}
    assert len(list(tmp_path.iterdir())) == 2


def test_result_above_one_mebibyte_is_written_without_details(tmp_path: Path) -> None:
    Results(tmp_path).write(status_with(data={"large": "x" * 2**20}))
    assert (tmp_path / "adapter-result.json").stat().st_size < 2**20
    assert json.loads((tmp_path / "adapter-report.json").read_text())["data"]["large"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (Path("/nowhere/adapter-result.json"), "the results directory /nowhere does not exist"),
        # Not even root may write there.
        (Path("/proc/adapter-result.json"), "results cannot be written to /proc"),
    ],
    ids=["missing", "read-only"],
)
def test_unusable_results_folder_is_rejected(path: Path, message: str) -> None:
    with pytest.raises(BadResults, match=message):
        Results(path).check()


def test_failed_write_keeps_the_earlier_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Results(tmp_path).write(status_with())
    before = (tmp_path / "adapter-result.json").read_bytes()

    def failing_fsync(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", failing_fsync)
    with pytest.raises(BadResults, match="Input/output error"):
        Results(tmp_path).write(status_with(adapter="another"))
    assert (tmp_path / "adapter-result.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter-report.json", "adapter-result.json"]


@pytest.mark.parametrize("name", ["adapter-result.json", "adapter-report.json"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_not_a_regular_file_is_never_replaced(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    make(tmp_path / name)
    with pytest.raises(BadResults, match=f"{name} is not a regular file; name another file"):
        Results(tmp_path).check()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_device_is_not_a_results_file() -> None:
    with pytest.raises(BadResults, match="/dev/full is not a regular file"):
        Results(Path("/dev/full")).check()
