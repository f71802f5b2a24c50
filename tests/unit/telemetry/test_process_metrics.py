"""Workers that share one port answer with one value for all of them."""

import os
from pathlib import Path

import pytest

from maestropy.telemetry import process_metrics

TICKS = os.sysconf("SC_CLK_TCK")


def add_process(proc: Path, pid: int, *, seconds: int, started: int, limit: int, ended_seconds: int = 0) -> None:
    """Write what the kernel says of a process with 1 MiB of virtual memory, 10 pages of memory and 3 open files."""
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    for number in range(3):
        (folder / "fd" / str(number)).touch()
    times = [seconds * TICKS, seconds * TICKS, ended_seconds * TICKS, ended_seconds * TICKS]
    fields = ["S", *["0"] * 10, *times, *["0"] * 4, started * TICKS, 2**20, 10]
    (folder / "stat").write_text(f"{pid} (a name (with) blanks) {' '.join(map(str, fields))}\n")
    (folder / "limits").write_text(f"Max open files            {limit}                 {limit}                 files\n")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "stat").write_text("btime 1000\n")
    add_process(tmp_path, 1, seconds=1, started=5, limit=900, ended_seconds=20)
    add_process(tmp_path, 2, seconds=2, started=6, limit=1000)
    add_process(tmp_path, 3, seconds=3, started=7, limit=1000)
    return tmp_path


def values(proc: Path, *workers: int) -> dict[str, float]:
    collector = process_metrics.WorkersCollector(1, workers=lambda: workers, proc=proc)
    return {family.name: sample.value for family in collector.collect() for sample in family.samples}


def test_processes_become_one_program(proc: Path) -> None:
    assert values(proc, 2, 3) == {
        "process_virtual_memory_bytes": 3 * 2**20,
        "process_resident_memory_bytes": 30 * os.sysconf("SC_PAGE_SIZE"),
        "process_start_time_seconds": 1005,
        "process_cpu_seconds": 2 * (1 + 2 + 3 + 20),
        "process_open_fds": 9,
        "process_max_fds": 900,
    }


def test_worker_that_has_just_exited_is_left_out(proc: Path) -> None:
    assert values(proc, 2, 4) == values(proc, 2)


def test_host_without_proc_has_none(tmp_path: Path) -> None:
    assert values(tmp_path / "absent", 2) == {}


def test_live_workers_are_those_with_live_gauges(tmp_path: Path) -> None:
    for name in ("gauge_livesum_12", "gauge_livemax_12", "gauge_livemin_7", "counter_7", "counter_9", "histogram_9"):
        (tmp_path / f"{name}.db").touch()
    assert process_metrics.live_workers(tmp_path) == [7, 12]
