"""Join the metrics `process_…` of a supervisor and its workers, which share one port, to those of one program.

Go programs export memory, CPU time, file descriptors and start time under these names. The library reads those of one
process from `/proc`; on a host without it there are none. A scrape reaches any worker, so each answers for all.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_JOINED: Final[dict[str, Callable[[Iterable[float]], float]]] = {
    "process_start_time_seconds": min,
    # A limit of each process, not of all together.
    "process_max_fds": min,
}
"""How the values of several processes become one; those that are not listed are added."""
_CPU: Final = "process_cpu_seconds"


class WorkersCollector(Collector):
    """Exports one value for a supervisor and its workers."""

    def __init__(self, supervisor: int, *, workers: Callable[[], Iterable[int]], proc: Path = Path("/proc")) -> None:
        """`workers` returns the IDs of the workers that run."""
        self._supervisor = supervisor
        self._workers = workers
        self._proc = proc

    def collect(self) -> Iterable[Metric]:
        """Read `/proc` of every process; one that has just exited is left out."""
        values: dict[str, list[float]] = {}
        families: dict[str, Metric] = {}
        for pid in (self._supervisor, *self._workers()):
            for family in self._of(pid):
                families[family.name] = family
                values.setdefault(family.name, []).extend(sample.value for sample in family.samples)
        if _CPU in values:
            # Without the time of workers that were replaced the counter would go back.
            values[_CPU].append(_ended_children_seconds(self._proc / str(self._supervisor)))
        return [_family(families[name], _JOINED.get(name, sum)(values[name])) for name in families]

    def _of(self, pid: int) -> Iterable[Metric]:
        return ProcessCollector(pid=lambda: pid, proc=str(self._proc), registry=None).collect()


def live_workers(folder: Path) -> list[int]:
    """Return the IDs of the workers with gauges in the folder of the library; those of ended workers are removed."""
    return sorted({int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*_*.db")})


def _ended_children_seconds(process: Path) -> float:
    try:
        # The name of the program, in parentheses, may hold blanks. See proc_pid_stat(5): cutime and cstime.
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def _family(family: Metric, value: float) -> Metric:
    kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    return kind(family.name, family.documentation, value=value)
