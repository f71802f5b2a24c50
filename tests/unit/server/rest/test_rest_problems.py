"""Errors become answers in the reference's form, and nothing of ours leaks into them."""

import json

import pytest

from maestropy.server.auth.rest import Unverified
from maestropy.server.rest import catalogue, problems
from maestropy.store import errors, search

SECRET = "psql password is hunter2"


@pytest.mark.parametrize(
    ("error", "status", "number"),
    [
        pytest.param(problems.Problem(catalogue.VALIDATION, "no"), 400, "8", id="problem"),
        pytest.param(search.SearchError("bad order value 'x'"), 400, "21", id="search"),
        pytest.param(Unverified("send a token"), 401, "15", id="token"),
        pytest.param(errors.Unavailable(SECRET), 503, "9", id="database-away"),
        pytest.param(errors.BadValue(SECRET), 400, "21", id="value-postgres-refuses"),
        pytest.param(errors.Misuse(SECRET), 500, "1000", id="wrong-statement"),
        pytest.param(ZeroDivisionError(SECRET), 500, "1000", id="bug"),
    ],
)
def test_answers(error: Exception, status: int, number: str) -> None:
    response = problems.answer(problems.translate(error), operation_id="op-1")
    body = json.loads(bytes(response.body))

    assert response.status_code == status
    assert list(body) == ["code", "href", "id", "kind", "operation_id", "reason"]
    assert (body["id"], body["code"]) == (number, f"maestro-{number}")
    assert body["href"] == f"/api/maestro/v1/errors/{number}"
    assert (body["kind"], body["operation_id"]) == ("Error", "op-1")
    assert SECRET not in body["reason"]
    assert response.headers["vary"] == "Authorization"


def test_a_database_that_is_away_says_when_to_come_again() -> None:
    response = problems.answer(problems.translate(errors.Unavailable("gone")), operation_id="")

    assert response.headers["retry-after"] == "5"


def test_an_unknown_path_has_its_own_form() -> None:
    body = json.loads(bytes(problems.no_such_path("/nowhere").body))

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
def test_kinds_by_id(text: str, status: int | None) -> None:
    found = catalogue.find(text)

    assert (found and found.status) == status


def test_texts_are_cut() -> None:
    assert len(problems.shorten("x" * 10_000)) < 300
