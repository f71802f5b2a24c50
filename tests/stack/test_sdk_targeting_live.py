"""Targets that ask the HyperFleet API, with a real HTTP server that plays it: pages, refusals, silence, nonsense."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from maestropy import errors, targeting
from maestropy.transport.http_listener import HttpListener

CLUSTERS = [
    {"name": f"us-east-mgmt-{number:03}", "region": "us-east", "status": "healthy", "load": 500 - number}
    for number in range(250)
]
ELSEWHERE = [{"name": "eu-mgmt-1", "region": "eu", "status": "healthy", "load": 1}]
ILL = [{"name": "us-east-ill", "region": "us-east", "status": "degraded", "load": 0}]


class Api:
    """The list of management clusters, filtered and paged, after as many other answers as it was given."""

    def __init__(self, *first: Response, forever: Response | None = None, is_bare: bool = False) -> None:
        self.url = ""
        self.asked: list[dict[str, str]] = []
        self.tokens: list[str] = []
        self.clusters: list[dict[str, Any]] = [*CLUSTERS, *ELSEWHERE, *ILL]
        self._first = list(first)
        self._forever = forever
        self._is_bare = is_bare
        self.app = Starlette(routes=[Route("/api/v1/management-clusters", self._list)])

    async def _list(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.asked.append(query)
        self.tokens.append(request.headers.get("Authorization", ""))
        if self._first:
            return self._first.pop(0)
        if self._forever:
            return self._forever
        wanted = {name: value for name, value in query.items() if name in ("region", "status")}
        found = [each for each in self.clusters if wanted.items() <= each.items()]
        if self._is_bare:
            return JSONResponse(found)
        page, size = int(query["page"]), int(query["size"])
        items = found[(page - 1) * size : page * size]
        return JSONResponse({"page": page, "size": len(items), "total": len(found), "items": items})


@asynccontextmanager
async def served(api: Api) -> AsyncIterator[Api]:
    listener = HttpListener(api.app, host="127.0.0.1", port=0)
    async with asyncio.TaskGroup() as group:
        group.create_task(listener.serve(tls=None), name="management clusters")
        api.url = f"http://127.0.0.1:{listener.port}"
        try:
            yield api
        finally:
            listener.stop()


def consumers(api: Api, make: Callable[[str], targeting.Target], *, times: int = 1) -> list[str]:
    async def scenario() -> list[str] | errors.MaestroError:
        async with served(api):
            target = make(api.url)
            try:
                return [await target.consumer() for _ in range(times)]
            except errors.MaestroError as error:
                return error

    found = asyncio.run(scenario())
    if isinstance(found, errors.MaestroError):
        raise found
    return found


@pytest.mark.parametrize("is_bare", [True, False], ids=["bare-list", "pages"])
def test_in_turn_among_all_that_are_healthy_in_the_region(is_bare: bool) -> None:
    api = Api(is_bare=is_bare)
    found = consumers(api, lambda url: targeting.from_hyperfleet(url, region="us-east"), times=3)
    assert found == [each["name"] for each in CLUSTERS[:3]]
    assert {(each["region"], each["status"]) for each in api.asked} == {("us-east", "healthy")}
    assert len(api.asked) == 3 * (1 if is_bare else 3)


def test_after_the_last_comes_the_first() -> None:
    api = Api()
    api.clusters = [{"name": name} for name in ("c", "a", "b")]
    found = consumers(api, lambda url: targeting.from_hyperfleet(url, status=""), times=5)
    assert found == ["a", "b", "c", "a", "b"]


def test_the_least_loaded_of_all_pages() -> None:
    target = consumers(
        Api(), lambda url: targeting.from_hyperfleet(f"{url}/", region="us-east", choose=targeting.least_loaded)
    )
    assert target == ["us-east-mgmt-249"]


def test_without_region_and_status_it_is_one_of_all() -> None:
    choose = targeting.least_loaded
    api = Api()
    assert consumers(api, lambda url: targeting.from_hyperfleet(url, status="", choose=choose)) == ["us-east-ill"]
    assert {"region", "status"}.isdisjoint(api.asked[0])


def test_a_server_that_repeats_its_page_is_asked_no_more_than_it_promises() -> None:
    page = JSONResponse({"total": 3, "items": [{"name": "a"}]})
    api = Api(forever=page)
    assert consumers(api, lambda url: targeting.from_hyperfleet(url), times=2) == ["a", "a"]
    assert len(api.asked) == 6


def test_a_list_that_changes_is_seen_by_the_next_work(tmp_path: Path) -> None:
    token = tmp_path / "token"
    api = Api()

    async def scenario() -> list[str]:
        async with served(api):
            target = targeting.from_hyperfleet(api.url, region="eu", token_file=token)
            token.write_text("first\n")
            found = [await target.consumer()]
            token.write_text("second\n")
            api.clusters = [{**ELSEWHERE[0], "name": "eu-mgmt-2"}]
            return [*found, await target.consumer()]

    assert asyncio.run(scenario()) == ["eu-mgmt-1", "eu-mgmt-2"]
    assert api.tokens == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("status", [500, 429])
def test_a_server_that_is_busy_is_asked_again(status: int) -> None:
    api = Api(Response(status_code=status), Response(status_code=status))
    assert consumers(api, lambda url: targeting.from_hyperfleet(url, region="eu")) == ["eu-mgmt-1"]
    assert len(api.asked) == 3


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        pytest.param(Response(status_code=404), errors.NotFound, "it must serve /api/v1/management-clusters", id="404"),
        pytest.param(Response(status_code=401), errors.Unauthorized, "HTTP 401", id="401"),
        pytest.param(Response(status_code=403), errors.Forbidden, "HTTP 403", id="403"),
        pytest.param(Response(status_code=400), errors.Invalid, "HTTP 400", id="400"),
        pytest.param(Response("<html>"), errors.ServerError, "the answer is no JSON", id="no-json"),
        pytest.param(Response('{"items": ['), errors.ServerError, "the answer is no JSON", id="half-a-json"),
        pytest.param(JSONResponse({"items": 7}), errors.Invalid, "cannot be read", id="no-list"),
        pytest.param(JSONResponse([{"region": "eu"}]), errors.Invalid, "has no name, only region", id="no-name"),
        pytest.param(JSONResponse([{"name": "Not A Name"}]), errors.ConfigError, "'Not A Name'", id="no-consumer-name"),
    ],
)
def test_an_answer_that_is_final_is_not_asked_for_again(
    answer: Response, kind: type[errors.MaestroError], says: str
) -> None:
    api = Api(forever=answer)
    with pytest.raises(kind, match=says) as caught:
        consumers(api, lambda url: targeting.from_hyperfleet(url, region="eu"))
    assert len(api.asked) == 1
    assert caught.value.is_retryable is False


@pytest.mark.parametrize("answer", [[], {"items": [], "total": 0}], ids=["bare", "paged"])
def test_nobody_there_says_what_was_wanted(answer: object) -> None:
    api = Api(forever=Response(json.dumps(answer)))
    with pytest.raises(errors.NotFound, match="lists none with region mars and status healthy; check"):
        consumers(api, lambda url: targeting.from_hyperfleet(url, region="mars"))


def test_a_server_that_stays_broken_ends_in_an_error_that_may_be_retried() -> None:
    api = Api(forever=Response(status_code=503))
    with pytest.raises(
        errors.Unavailable, match=r"ask http://127.0.0.1:\d+ for management clusters: HTTP 503"
    ) as caught:
        consumers(api, lambda url: targeting.from_hyperfleet(url, timeout=1))
    assert caught.value.is_retryable is True
    assert len(api.asked) > 1


def test_a_server_that_does_not_answer_in_time() -> None:
    async def scenario() -> None:
        # Connections wait in the queue of a socket that nobody accepts from.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            await targeting.from_hyperfleet(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2).consumer()

    with pytest.raises(errors.Timeout, match="no answer: ReadTimeout"):
        asyncio.run(scenario())


def test_nobody_listens() -> None:
    with pytest.raises(errors.Unavailable, match="no answer: All connection attempts failed"):
        asyncio.run(targeting.from_hyperfleet("http://127.0.0.1:1", timeout=0.3).consumer())
    with pytest.raises(errors.ConfigError, match="no address"):
        asyncio.run(targeting.from_hyperfleet("hyperfleet:8000", timeout=0.3).consumer())
