"""`--wait` continues through server restarts and ends with rejections."""

from collections.abc import Iterator

import pytest

from maestropy.cli.client.bundles import steps
from maestropy.sdk import errors


def test_wait_survives_a_server_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_POLL_SECONDS", 0)
    results: Iterator[bool | Exception] = iter([errors.Unavailable("no server"), errors.Timeout("late"), False, True])

    def state() -> bool:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    assert steps._is_reached(state, seconds=30)


def test_wait_ends_with_forbidden() -> None:
    def state() -> bool:
        raise errors.Forbidden("no")

    with pytest.raises(errors.Forbidden):
        steps._is_reached(state, seconds=30)
