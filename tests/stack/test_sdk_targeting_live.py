"""Targets that list the management clusters of a fake HyperFleet API: pages, errors, timeouts, malformed responses."""

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
from maestropy.transport.http.listener import HttpListener

CLUSTERS = [
    {"name": f"us-east-mgmt-{number:03}", "region": "us-east", "status": "healthy", "load": 500 - number}
    for number in range(250)
]
OTHER_REGION = [{"name": "eu-mgmt-1", "region": "eu", "status": "healthy", "load": 1}]
DEGRADED = [{"name": "us-east-degraded", "region": "us-east", "status": "degraded", "load": 0}]


class Api:
    """The list of management clusters, filtered and paged, after the given first responses."""

    def __init__(self, *first: Response, forever: Response | None = None, is_bare: bool = False) -> None:
        self.url = ""
        self.queries: list[dict[str, str]] = []
        self.tokens: list[str] = []
        self.clusters: list[dict[str, Any]] = [*CLUSTERS, *OTHER_REGION, *DEGRADED]
        self._first = list(first)
        self._forever = forever
        self._is_bare = is_bare
        self.app = Starlette(routes=[Route("/api/v1/management-clusters", self._list)])

    async def _list(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.queries.append(query)
        self.tokens.append(request.headers.get("Authorization", ""))
        if self._first:
            return self._first.pop(0)
        if self._forever:
            return self._forever
        filters = {name: value for name, value in query.items() if name in ("region", "status")}
        matching = [cluster for cluster in self.clusters if filters.items() <= cluster.items()]
        if self._is_bare:
            return JSONResponse(matching)
        page, size = int(query["page"]), int(query["size"])
        items = matching[(page - 1) * size : page * size]
        return JSONResponse({"page": page, "size": len(items), "total": len(matching), "items": items})


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

    result = asyncio.run(scenario())
    if isinstance(result, errors.MaestroError):
        raise result
    return result


@pytest.mark.parametrize("is_bare", [True, False], ids=["bare-list", "pages"])
def test_healthy_clusters_of_the_region_are_chosen_in_turn(is_bare: bool) -> None:
    api = Api(is_bare=is_bare)
    chosen = consumers(api, lambda url: targeting.from_hyperfleet(url, region="us-east"), times=3)
    assert chosen == [cluster["name"] for cluster in CLUSTERS[:3]]
    assert {(query["region"], query["status"]) for query in api.queries} == {("us-east", "healthy")}
    assert len(api.queries) == 3 * (1 if is_bare else 3)


def test_first_cluster_follows_the_last() -> None:
    api = Api()
    api.clusters = [{"name": name} for name in ("c", "a", "b")]
    chosen = consumers(api, lambda url: targeting.from_hyperfleet(url, status=""), times=5)
    assert chosen == ["a", "b", "c", "a", "b"]


def test_least_loaded_cluster_of_all_pages_is_chosen() -> None:
    target = consumers(
        Api(), lambda url: targeting.from_hyperfleet(f"{url}/", region="us-east", choose=targeting.least_loaded)
    )
    assert target == ["us-east-mgmt-249"]


def test_all_clusters_are_listed_without_region_and_status() -> None:
    choose = targeting.least_loaded
    api = Api()
    assert consumers(api, lambda url: targeting.from_hyperfleet(url, status="", choose=choose)) == ["us-east-degraded"]
    assert {"region", "status"}.isdisjoint(api.queries[0])


def test_repeated_page_ends_at_the_total() -> None:
    page = JSONResponse({"total": 3, "items": [{"name": "a"}]})
    api = Api(forever=page)
    assert consumers(api, lambda url: targeting.from_hyperfleet(url), times=2) == ["a", "a"]
    assert len(api.queries) == 6


async def test_changed_list_and_token_are_read_for_the_next_work(tmp_path: Path) -> None:
    token = tmp_path / "token"
    api = Api()

    async def scenario() -> list[str]:
        async with served(api):
            target = targeting.from_hyperfleet(api.url, region="eu", token_file=token)
            token.write_text("first\n")
            chosen = [await target.consumer()]
            token.write_text("second\n")
            api.clusters = [{**OTHER_REGION[0], "name": "eu-mgmt-2"}]
            return [*chosen, await target.consumer()]

    assert await scenario() == ["eu-mgmt-1", "eu-mgmt-2"]
    assert api.tokens == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("status", [500, 429])
def test_overloaded_server_is_retried(status: int) -> None:
    api = Api(Response(status_code=status), Response(status_code=status))
    assert consumers(api, lambda url: targeting.from_hyperfleet(url, region="eu")) == ["eu-mgmt-1"]
    assert len(api.queries) == 3


@pytest.mark.parametrize(
    ("response", "kind", "message"),
    [
        pytest.param(Response(status_code=404), errors.NotFound, "it must serve /api/v1/management-clusters", id="404"),
        pytest.param(Response(status_code=401), errors.Unauthorized, "HTTP 401", id="401"),
        pytest.param(Response(status_code=403), errors.Forbidden, "HTTP 403", id="403"),
        pytest.param(Response(status_code=400), errors.Invalid, "HTTP 400", id="400"),
        pytest.param(Response("<html>"), errors.ServerError, "the response is not JSON", id="not-json"),
        pytest.param(Response('{"items": ['), errors.ServerError, "the response is not JSON", id="truncated-json"),
        pytest.param(JSONResponse({"items": 7}), errors.Invalid, "is malformed", id="not-a-list"),
        pytest.param(JSONResponse([{"region": "eu"}]), errors.Invalid, "has no name, only region", id="no-name"),
        pytest.param(
            JSONResponse([{"name": "Not A Name"}]), errors.ConfigError, "'Not A Name'", id="invalid-consumer-name"
        ),
    ],
)
def test_final_response_is_not_retried(response: Response, kind: type[errors.MaestroError], message: str) -> None:
    api = Api(forever=response)
    with pytest.raises(kind, match=message) as caught:
        consumers(api, lambda url: targeting.from_hyperfleet(url, region="eu"))
    assert len(api.queries) == 1
    assert caught.value.is_retryable is False


@pytest.mark.parametrize("body", [[], {"items": [], "total": 0}], ids=["bare", "paged"])
def test_empty_list_names_the_filters(body: object) -> None:
    api = Api(forever=Response(json.dumps(body)))
    with pytest.raises(errors.NotFound, match="lists no cluster with region mars and status healthy; check"):
        consumers(api, lambda url: targeting.from_hyperfleet(url, region="mars"))


def test_failing_server_ends_in_a_retryable_error() -> None:
    api = Api(forever=Response(status_code=503))
    with pytest.raises(
        errors.Unavailable, match=r"list management clusters of http://127.0.0.1:\d+: HTTP 503"
    ) as caught:
        consumers(api, lambda url: targeting.from_hyperfleet(url, timeout=1))
    assert caught.value.is_retryable is True
    assert len(api.queries) > 1


async def test_silent_server_is_a_timeout() -> None:
    async def scenario() -> None:
        # The socket queues connections and never accepts them.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            await targeting.from_hyperfleet(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2).consumer()

    with pytest.raises(errors.Timeout, match="no response: ReadTimeout"):
        await scenario()


async def test_unreachable_server_is_unavailable() -> None:
    with pytest.raises(errors.Unavailable, match="no response: All connection attempts failed"):
        await targeting.from_hyperfleet("http://127.0.0.1:1", timeout=0.3).consumer()
    with pytest.raises(errors.ConfigError, match="is not an address"):
        await targeting.from_hyperfleet("hyperfleet:8000", timeout=0.3).consumer()
