"""`--wait` continues through server restarts and ends with rejections."""

from collections.abc import Iterator

import pytest

from maestropy.cli.client.bundles import steps
from maestropy.sdk import errors


def test_wait_survives_a_server_restart_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "_POLL_SECONDS", 0)
    results: Iterator[bool | Exception] = iter([errors.Unavailable("no server"), errors.Timeout("late"), False, True])

    def state() -> bool:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    assert steps._Poll(state).reaches_within(30)
    assert capsys.readouterr().err == (
        "The server is gone: no server; trying again until it is back\nThe server is back\n"
    )


def test_wait_that_ends_during_an_outage_names_it() -> None:
    def state() -> bool:
        raise errors.Unavailable("no response from http://127.0.0.1:1/")

    poll = steps._Poll(state)
    assert not poll.reaches_within(0)
    assert poll.why("Applied is False") == (
        "the server is gone: no response from http://127.0.0.1:1/; before that: Applied is False"
    )


def test_wait_ends_with_forbidden() -> None:
    def state() -> bool:
        raise errors.Forbidden("no")

    with pytest.raises(errors.Forbidden):
        steps._Poll(state).reaches_within(30)
