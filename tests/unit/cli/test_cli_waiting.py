"""What `--wait` waits through."""

from collections.abc import Iterator

import pytest

from maestropy.cli import bundle_story
from maestropy.sdk import errors


def test_a_server_that_is_started_again_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_story, "_LOOK_SECONDS", 0)
    answers: Iterator[bool | Exception] = iter([errors.Unavailable("nobody"), errors.Timeout("late"), False, True])

    def look() -> bool:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert bundle_story._comes(look, seconds=30)


def test_a_refusal_ends_the_waiting() -> None:
    def look() -> bool:
        raise errors.Forbidden("no")

    with pytest.raises(errors.Forbidden):
        bundle_story._comes(look, seconds=30)
