"""Error classes of responses of the API server."""

from typing import Any

import pytest

from maestropy.kube import errors


def status(reason: str, message: str = "said the server", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "reason": reason, "message": message, "details": details}


@pytest.mark.parametrize(
    ("code", "body", "family"),
    [
        (400, status("BadRequest"), errors.ApiError),
        (401, status("Unauthorized"), errors.Unauthorized),
        (403, status("Forbidden"), errors.Forbidden),
        (404, status("NotFound"), errors.NotFound),
        (409, status("AlreadyExists"), errors.AlreadyExists),
        (409, status("Conflict"), errors.Conflict),
        (410, status("Expired"), errors.Gone),
        (410, status("Gone"), errors.Gone),
        (422, status("Invalid"), errors.Invalid),
        (429, status("TooManyRequests"), errors.TooManyRequests),
        (500, status("InternalError"), errors.ServerError),
        (503, status("ServiceUnavailable"), errors.Unavailable),
        (504, status("Timeout"), errors.Timeout),
    ],
)
def test_error_class(code: int, body: dict[str, Any], family: type[errors.KubeError]) -> None:
    error = errors.from_status(code, body)
    assert type(error) is family
    assert (error.status, error.reason, str(error)) == (code, body["reason"], "said the server")


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [(None, {}, None), (3.0, {"retryAfterSeconds": 9}, 3.0), (None, {"retryAfterSeconds": 9}, 9.0)],
    ids=["none", "header-wins", "from-the-status"],
)
def test_retry_after(header: float | None, details: dict[str, Any], expected: float | None) -> None:
    error = errors.from_status(429, status("TooManyRequests", **details), retry_after=header)
    assert isinstance(error, errors.TooManyRequests)
    assert error.retry_after == expected


def test_long_message_is_shortened() -> None:
    assert len(str(errors.from_status(422, status("Invalid", "x" * 100_000)))) == errors.MESSAGE_LIMIT


@pytest.mark.parametrize("body", [None, {"kind": "Status", "message": ["x"], "reason": 7, "details": "?"}])
def test_malformed_body_is_still_an_error(body: dict[str, Any] | None) -> None:
    error = errors.from_status(502, body)
    assert type(error) is errors.ServerError
    assert "HTTP 502" in str(error)
    assert error.reason == ""
