"""The trace of a request follows from its operation ID, everywhere alike."""

import pytest

from maestropy.telemetry import trace_context
from maestropy.telemetry.trace_context import SpanContext

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(PARENT, SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, True), id="sampled"),
        pytest.param(
            f"{PARENT[:-2]}00",
            SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, False),
            id="not-sampled",
        ),
        pytest.param(
            f"cc{PARENT[2:]}-more",
            SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, True),
            id="later-version",
        ),
        pytest.param("", None, id="empty"),
        pytest.param(f"{PARENT}-more", None, id="version-0-with-more"),
        pytest.param(f"ff{PARENT[2:]}", None, id="forbidden-version"),
        pytest.param(PARENT.upper(), None, id="upper-case"),
        pytest.param(f"00-{'0' * 32}-b7ad6b7169203331-01", None, id="no-trace"),
        pytest.param(f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01", None, id="no-span"),
        pytest.param(f"cc{PARENT[2:]}-{'x' * 1000}", None, id="too-long"),
        pytest.param(f"{PARENT}\n", None, id="line-feed"),
    ],
)
def test_parse(text: str, expected: SpanContext | None) -> None:
    assert trace_context.parse(text) == expected


def test_a_context_is_written_as_it_is_read() -> None:
    assert str(trace_context.parse(PARENT)) == PARENT


def test_an_operation_id_names_its_trace_and_any_other_is_hashed() -> None:
    named = trace_context.of_request(PARENT, "r1", 1)
    assert str(named) == PARENT
    hashed = trace_context.of_request("my-operation", "r1", 1)
    # Stable for ever: processes of other versions must find the same trace.
    assert hashed == SpanContext(0x6B9D51B14FD2BB145A3E2BF1D26ED509, 0)
    assert trace_context.of_request("my-operation", "r2", 9) == hashed


@pytest.mark.parametrize("limit", [0, 2**57, 2**63, 2**64])
@pytest.mark.parametrize("operation_id", ["my-operation", "\udc80", *(f"operation-{number}" for number in range(50))])
def test_the_short_way_to_an_untraced_request_decides_as_the_long_one(operation_id: str, limit: int) -> None:
    trace_id = trace_context.of_request(operation_id, "r1", 1).trace_id
    assert trace_context.is_above(operation_id, limit) == (trace_id % 2**64 >= limit)


def test_an_operation_id_that_may_name_its_trace_goes_the_long_way() -> None:
    assert not trace_context.is_above(PARENT, 0)
    assert not trace_context.is_above("00-nothing", 0)


def test_without_an_operation_id_each_version_of_a_resource_has_a_trace() -> None:
    traces = {trace_context.of_request("", resource, version) for resource in ("r1", "r2") for version in (1, 2)}
    assert len(traces) == 4
    assert trace_context.of_request("", "r1", 1) in traces


def test_the_id_of_a_commit_depends_on_all_that_names_it() -> None:
    commit = trace_context.spec_commit_id(1, "r1", 1)
    assert commit == trace_context.spec_commit_id(1, "r1", 1)
    others = {trace_context.spec_commit_id(*parts) for parts in ((2, "r1", 1), (1, "r2", 1), (1, "r1", 2))}
    assert commit not in others
    assert len(others) == 3
