"""Error responses have the form of the Go server, and leak nothing of the server."""

import json

import pytest

from maestropy.server.api.rest.http import error_catalogue
from maestropy.server.api.rest.http import errors as rest_errors
from maestropy.server.auth.rest import Unverified
from maestropy.store import errors, search

SECRET = "psql password is hunter2"


@pytest.mark.parametrize(
    ("error", "status", "number"),
    [
        pytest.param(rest_errors.RestError(error_catalogue.VALIDATION, "no"), 400, "8", id="rest-error"),
        pytest.param(search.SearchError("bad order value 'x'"), 400, "21", id="search"),
        pytest.param(Unverified("send a token"), 401, "15", id="token"),
        pytest.param(errors.DatabaseUnavailable(SECRET), 503, "9", id="database-unavailable"),
        pytest.param(errors.InvalidValue(SECRET), 400, "21", id="invalid-value"),
        pytest.param(errors.StatementError(SECRET), 500, "1000", id="wrong-statement"),
        pytest.param(ZeroDivisionError(SECRET), 500, "1000", id="unexpected-error"),
    ],
)
def test_error_response(error: Exception, status: int, number: str) -> None:
    response = rest_errors.response(rest_errors.translate(error), operation_id="op-1")
    body = json.loads(bytes(response.body))

    assert response.status_code == status
    assert list(body) == ["code", "href", "id", "kind", "operation_id", "reason"]
    assert (body["id"], body["code"]) == (number, f"maestro-{number}")
    assert body["href"] == f"/api/maestro/v1/errors/{number}"
    assert (body["kind"], body["operation_id"]) == ("Error", "op-1")
    assert SECRET not in body["reason"]
    assert response.headers["vary"] == "Authorization"


def test_unavailable_database_sends_retry_after() -> None:
    response = rest_errors.response(rest_errors.translate(errors.DatabaseUnavailable("gone")), operation_id="")

    assert response.headers["retry-after"] == "5"


def test_unknown_path_has_its_own_body() -> None:
    body = json.loads(bytes(rest_errors.no_such_path("/nowhere").body))

    assert body == {
        "type": "Error",
        "id": "404",
        "href": "/api/maestro/v1/errors/404",
        "code": "maestro-404",
        "reason": "The requested resource '/nowhere' doesn't exist",
    }


@pytest.mark.parametrize(
    ("text", "status"),
    [("7", 404), ("26", 500), ("0", None), ("x", None), ("²", None), ("-7", None), ("7" * 5000, None)],
    ids=["known", "last", "unknown", "word", "superscript", "negative", "endless"],
)
def test_error_kind_by_id(text: str, status: int | None) -> None:
    kind = error_catalogue.find(text)

    assert (kind and kind.status) == status


def test_long_text_is_shortened() -> None:
    assert len(rest_errors.shorten("x" * 10_000)) < 300
