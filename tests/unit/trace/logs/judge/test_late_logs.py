# ruff: noqa: E501 - log lines are as long as they are
"""Logs that begin after an agent or a client subscribed: what they show of it, and what they do not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.trace.logs.model import Options, RequestVerdict, StageState
from tests.trace_request_logs import AGENT, BASE, LoggedRequest
from tests.unit.trace.logs.judge.test_situations import (
    CREATE,
    SERVER,
    Line,
    alive,
    at,
    codes,
    concluded,
    lines_of,
    status,
    traced,
)
from tests.unit.trace.logs.judge.test_user_situations import LISTENER, SOURCE, searched

LEFT = '"unregister subscriber" id="s1" clusterName="mgmt-1" dataType="io.open-cluster-management.works.v1alpha1.manifestbundles"'
BACK = '"registering subscriber" id="s2" clusterName="mgmt-1"'
RECEIVED = [*lines_of(replace(CREATE, until=1)), *alive(SERVER)]
BEFORE = at(-60, SERVER, "begins")
FAR = [at(-50 + number / 100, SERVER, f'"Heartbeat {number}" logger="maestro-server"') for number in range(4000)]


def test_agent_of_which_only_the_end_is_shown_was_connected_until_then(tmp_path: Path) -> None:
    lines = [BEFORE, at(-5, SERVER, LEFT), *RECEIVED]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.INCOMPLETE, 3, "MT-301"), "likely")
    assert trace.main_finding is not None
    assert "the last one has disconnected at 08:59:5" in trace.main_finding.detail
    assert concluded(searched(tmp_path, lines)) == concluded(trace)


@pytest.mark.parametrize("more", [
    [at(-4, SERVER, BACK)],
    [*lines_of(LoggedRequest(work="other", at=BASE + 5), agent=False)],
], ids=["subscribed-again", "reports-since"])  # fmt: skip
def test_agent_that_left_and_is_back_is_not_called_absent(tmp_path: Path, more: Sequence[Line]) -> None:
    trace = traced(tmp_path, [BEFORE, at(-5, SERVER, LEFT), *RECEIVED, *more])["nginx", "create"]
    assert not any("has disconnected" in finding.detail for finding in trace.findings)


def test_consumer_that_no_line_shows_is_unknown_and_not_missing(tmp_path: Path) -> None:
    trace = traced(tmp_path, [BEFORE, *RECEIVED])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 2, "MT-209")
    assert "whether consumer mgmt-1 exists and had an agent connected, these logs do not show" in str(
        trace.main_finding
    )


def test_consumer_that_is_known_besides_the_logs_is_not_doubted(tmp_path: Path) -> None:
    trace = traced(tmp_path, [BEFORE, *RECEIVED], Options(consumers=frozenset({"mgmt-1"})))["nginx", "create"]
    assert (concluded(trace), str(trace.main_finding).count("exists")) == ((RequestVerdict.INCOMPLETE, 2, "MT-209"), 0)


@pytest.mark.parametrize(("left", "expected"), [(-90, (3, "MT-301")), (20, (2, "MT-209"))], ids=["left", "there"])
def test_agent_that_left_before_the_logs_begin_is_known_by_the_history(
    tmp_path: Path, left: float, expected: tuple[int, str]
) -> None:
    options = Options(consumers=frozenset({"mgmt-1"}), departures=(("mgmt-1", BASE + left),))
    trace = traced(tmp_path, ours([BEFORE, *RECEIVED]), options)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, *expected)


def test_agent_that_reported_since_it_left_is_back(tmp_path: Path) -> None:
    other = lines_of(LoggedRequest(work="other", at=BASE - 30), agent=False)
    options = Options(departures=(("mgmt-1", BASE - 90),))
    assert "MT-301" not in codes(traced(tmp_path, [BEFORE, *RECEIVED, *other], options)["nginx", "create"])


def ours(lines: Sequence[Line]) -> list[Line]:
    """Return the lines as a server of this project writes them, which is silent about statuses nobody waits for."""
    return [(pod, moment, line.replace(".go:", ".py:")) for pod, moment, line in lines]


STORED = [*lines_of(replace(CREATE, until=7)), status(CREATE, 0.3, applied="True"), *alive(SERVER), *alive(AGENT)]
CLIENT = f'id="c1" source="{SOURCE}"'


def test_status_that_nobody_is_known_to_wait_for_is_complete(tmp_path: Path) -> None:
    lines = ours([BEFORE, *FAR, *STORED])
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-002"})
    assert [stage.state for stage in trace.stages[7:]] == [StageState.NOT_OBSERVABLE] * 2
    assert "whether a client was subscribed" in trace.findings[0].detail
    alone = searched(tmp_path, lines)
    assert (alone.verdict, codes(alone)) == (trace.verdict, codes(trace))


@pytest.mark.parametrize(("more", "stage", "code"), [
    ([at(-5, SERVER, f'"registered a broadcaster client" {CLIENT}')], 8, "MT-803"),
    ([at(5, SERVER, f'"unregistered broadcaster client" {CLIENT}')], 8, "MT-803"),
    ([line for line in lines_of(LoggedRequest(work="other", at=BASE - 30)) if "Broadcast the" not in line[2]], 8, "MT-803"),
    ([(SERVER, *LISTENER[1:])], 8, "MT-801"),
], ids=["subscribed", "unsubscribed-later", "another-status-was-sent", "listener-lost"])  # fmt: skip
def test_status_that_a_client_waits_for_is_missed(tmp_path: Path, more: list[Line], stage: int, code: str) -> None:
    lines = ours([BEFORE, *FAR, *STORED, *more])
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, stage, code)
    assert concluded(searched(tmp_path, lines)) == concluded(trace)


def test_client_of_which_only_the_end_is_shown_has_left(tmp_path: Path) -> None:
    lines = ours([BEFORE, at(-5, SERVER, f'"unregistered broadcaster client" {CLIENT}'), *STORED])
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-901"})
    assert trace.findings[0].confidence == "likely"


def test_server_of_go_that_did_not_broadcast_is_still_told(tmp_path: Path) -> None:
    assert concluded(traced(tmp_path, [BEFORE, *STORED])["nginx", "create"]) == (RequestVerdict.INCOMPLETE, 8, "MT-803")
