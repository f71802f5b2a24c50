"""The generation rules and the states of resources, by table."""

import pytest

from maestropy.adapter.tasks import states
from maestropy.adapter.tasks.states import WriteCreate, WriteSkip, WriteUpdate


@pytest.mark.parametrize(
    ("desired", "written", "mirrored", "expected"),
    [
        pytest.param(5, None, None, WriteCreate, id="never-written"),
        pytest.param(5, 5, 5, WriteSkip, id="equal"),
        pytest.param(5, 5, 3, WriteSkip, id="equal-and-the-mirror-lags"),
        pytest.param(5, 4, 4, WriteUpdate, id="higher"),
        pytest.param(5, 6, 4, WriteSkip, id="lower-than-the-write"),
        pytest.param(5, 4, 6, WriteSkip, id="lower-than-the-mirror"),
        pytest.param(5, 4, 5, WriteUpdate, id="mirror-ahead-of-the-write"),
    ],
)
def test_a_generation_is_written_skipped_or_refused(
    desired: int, written: int | None, mirrored: int | None, expected: type
) -> None:
    write = states.decide_write(desired, written=written, mirrored=mirrored)
    assert type(write) is expected
    if isinstance(write, WriteSkip):
        is_refused = desired < (written or 0) or desired < (mirrored or 0)
        assert write.is_stale is is_refused
        assert write.reason.startswith("stale generation") is is_refused


@pytest.mark.parametrize(
    ("is_stored", "has_object", "state"),
    [
        (True, True, "present"),
        (True, False, "unsynced"),
        (False, False, "confirmed_deleted"),
    ],
)
def test_the_state_of_a_resource(is_stored: bool, has_object: bool, state: str) -> None:
    assert states.state_of(is_stored=is_stored, has_object=has_object) == state


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("0", None), ("-1", None), ("x", None), (None, None), (7, None)]
)
def test_a_generation_annotation_is_a_number_above_zero(text: object, number: int | None) -> None:
    assert states.generation_in(text) == number
