"""Read the history over REST: pages, and a server that keeps none."""

from typing import Any

import pytest

from maestropy.sdk import errors, history
from maestropy.sdk._connection import error_mapping

_GO_404 = "The requested resource '/api/maestro/v1/resource-bundles/x/history' doesn't exist"


class Rest:
    """Answers with pages, one after the other, or raises."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.queries: list[dict[str, Any]] = []

    async def page(self, path: str, *, kind: str, doing: str, query: dict[str, Any]) -> dict[str, Any]:
        del path, kind, doing
        self.queries.append(query)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        page: dict[str, Any] = answer
        return page


async def read(rest: Any, **wanted: Any) -> list[str]:
    entries = history.read(rest, "/history", doing="read", wanted=history.HistoryFilter(**wanted))
    return [entry.id async for entry in entries]


async def test_pages_are_read_until_there_is_no_token() -> None:
    rest = Rest({"items": [{"id": "1"}, {"id": "2"}], "continue": "t"}, {"items": [{"id": "3"}]})
    assert await read(rest, kinds=["work", "agent"], newest_first=True) == ["1", "2", "3"]
    assert [query["continue"] for query in rest.queries] == ["", "t"]
    assert (rest.queries[0]["kind"], rest.queries[0]["order"]) == ("work,agent", "desc")


async def test_limit_ends_the_reading() -> None:
    rest = Rest({"items": [{"id": "1"}, {"id": "2"}], "continue": "t"})
    assert await read(rest, limit=2) == ["1", "2"]
    assert rest.queries[0]["size"] == 2


async def test_go_server_keeps_no_history() -> None:
    with pytest.raises(errors.Unsupported, match="keeps no history: it is a Go Maestro"):
        await read(Rest(error_mapping.UnknownPath(_GO_404)))


async def test_unknown_work_is_not_found() -> None:
    with pytest.raises(errors.NotFound):
        await read(Rest(errors.NotFound("ResourceBundle with id='x' not found")))


async def test_limit_must_be_positive() -> None:
    with pytest.raises(errors.Invalid, match="limit is 0"):
        await read(Rest(), limit=0)


@pytest.mark.parametrize(
    ("entry", "requester"),
    [
        pytest.param({"kind": "work.updated", "user": "ada", "source": "a"}, "ada", id="user"),
        pytest.param({"kind": "work.updated", "source": "a"}, "source a", id="source"),
        pytest.param({"kind": "work.status", "source": "a"}, "", id="agent"),
        pytest.param({"kind": "work.deleted", "source": "a"}, "", id="confirmed-by-the-agent"),
        pytest.param({"kind": "agent.connected"}, "", id="connect"),
        pytest.param(
            {"kind": "work.deletion-requested", "source": "a", "detail": {"action": "retire", "requested_by": "x@y"}},
            "unauthenticated (x@y)",
            id="deleted-by-a-retirement",
        ),
        pytest.param(
            {"kind": "work.deletion-requested", "source": "a", "detail": {"action": "delete"}},
            "unauthenticated",
            id="deleted-over-rest",
        ),
        pytest.param({"kind": "work.released", "source": "a"}, "unauthenticated", id="released-without-a-name"),
        pytest.param(
            {"kind": "work.resent", "source": "a", "user": "ada", "detail": {"requested_by": "x@y"}},
            "ada",
            id="user-not-who-the-client-says-it-is",
        ),
    ],
)
def test_requester_is_who_asked_and_not_the_source_of_the_work(entry: dict[str, Any], requester: str) -> None:
    assert history.HistoryEntry.from_dict(entry).requester == requester
