from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.flags import duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta()),
        ("2m0s", timedelta(minutes=2)),
        ("10s", timedelta(seconds=10)),
        ("500ms", timedelta(milliseconds=500)),
        ("1.5h", timedelta(minutes=90)),
        (".5s", timedelta(milliseconds=500)),
        ("1h2m3s4ms5us", timedelta(hours=1, minutes=2, seconds=3, milliseconds=4, microseconds=5)),
        ("-1m", -timedelta(minutes=1)),
        ("3000ns", timedelta(microseconds=3)),
    ],
)
def test_go_duration_is_parsed(text: str, expected: timedelta) -> None:
    assert duration.parse(text) == expected


@pytest.mark.parametrize("text", ["", "s", "5", "1d", "1 s", "1s ", "--1s", "1s2", "1e3s", "٣s", "9999999h", "."])
def test_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(ValueError):
        duration.parse(text)


@given(st.timedeltas(min_value=-duration.LONGEST, max_value=duration.LONGEST))
def test_rendered_duration_parses_to_the_same_value(length: timedelta) -> None:
    assert duration.parse(duration.render(length)) == length


@pytest.mark.parametrize(("text", "seconds"), [("5", 5.0), ("0.25", 0.25), (" 1m30s ", 90.0), ("500ms", 0.5)])
def test_seconds_accepts_a_number_or_a_duration(text: str, seconds: float) -> None:
    assert duration.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1d", "inf", "nan"])
def test_seconds_rejects_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=text.strip() or "could not convert"):
        duration.seconds(text)
