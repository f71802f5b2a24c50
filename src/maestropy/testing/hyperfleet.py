"""A HyperFleet API small enough to read: clusters and node pools, and statuses judged by the real one's rules.

    with fake_hyperfleet() as hyperfleet:
        hyperfleet.put("Cluster", "abc", spec={...})
        ...
        hyperfleet.statuses["abc"]["controlplane"]["conditions"]

A status is kept (201) or silently discarded (204): future generation, older generation, older time at the same
generation, Available=Unknown where one is known. What lacks a mandatory condition is refused (400).
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from maestropy.testing.loop import loop_thread
from maestropy.transport.http_listener import HttpListener
from maestropy.wire import instant

_MANDATORY = ("Applied", "Available", "Health")
_ROOT = "/api/hyperfleet/v1"


class FakeHyperFleet:
    """Resources and statuses in memory."""

    def __init__(self) -> None:
        self.url = ""
        """Where it listens, while it runs."""
        self.resources: dict[str, dict[str, Any]] = {}
        self.statuses: dict[str, dict[str, dict[str, Any]]] = {}
        """What adapters reported and the API kept: by resource id, by adapter."""
        self.answers: list[int] = []
        """How every status that came in was answered."""
        self.requests: list[str] = []
        """Every request so far, such as `GET /api/hyperfleet/v1/clusters/abc`."""
        self.is_down = False
        """Whether it answers everything with 503."""
        self.app = Starlette(
            routes=[
                Route(f"{_ROOT}/{{path:path}}/statuses", self._put, methods=["PUT"]),
                Route(f"{_ROOT}/{{path:path}}", self._get, methods=["GET"]),
            ]
        )

    def put(
        self, kind: str, resource_id: str, *, spec: Mapping[str, Any], owner_id: str = "", **more: Any
    ) -> dict[str, Any]:
        """Create a resource, or change its spec, which makes a new generation; returns the event for it."""
        before = self.resources.get(resource_id)
        base = f"{_ROOT}/clusters/{owner_id}/nodepools" if owner_id else f"{_ROOT}/clusters"
        generation = 1 if before is None else before["generation"] + (before["spec"] != dict(spec))
        found: dict[str, Any] = {
            "id": resource_id,
            "kind": kind,
            "name": resource_id,
            "href": f"{base}/{resource_id}",
            "generation": generation,
            "spec": dict(spec),
            **({"owner_references": {"id": owner_id, "kind": "Cluster"}} if owner_id else {}),
            **more,
        }
        self.resources[resource_id] = found
        return self.event(resource_id)

    def delete(self, resource_id: str) -> dict[str, Any]:
        """Ask for a resource's end, which makes a new generation; returns the event for it."""
        found = self.resources[resource_id]
        self.resources[resource_id] = found | {
            "deleted_time": "2026-01-01T00:00:00Z",
            "generation": found["generation"] + 1,
        }
        return self.event(resource_id)

    def event(self, resource_id: str) -> dict[str, Any]:
        """Return the CloudEvent that asks adapters to look at a resource."""
        found = self.resources[resource_id]
        names = ("id", "kind", "href", "generation", "owner_references")
        return {
            "specversion": "1.0",
            "type": f"com.redhat.hyperfleet.{found['kind'].lower()}.reconcile",
            "source": "hyperfleet-sentinel",
            "id": f"{resource_id}-{found['generation']}",
            "datacontenttype": "application/json",
            "data": {name: found[name] for name in names if name in found},
        }

    def condition(self, resource_id: str, adapter: str, kind: str) -> dict[str, str]:
        """Return a condition that an adapter reported."""
        told: list[dict[str, str]] = self.statuses[resource_id][adapter]["conditions"]
        return next(each for each in told if each["type"] == kind)

    async def _get(self, request: Request) -> Response:
        self.requests.append(f"GET {request.url.path}")
        if self.is_down:
            return _problem(503, "SVC-001", "not now")
        found = self.resources.get(request.path_params["path"].rpartition("/")[2])
        return JSONResponse(found) if found else _problem(404, "NTF-001", "no such resource")

    async def _put(self, request: Request) -> Response:
        self.requests.append(f"PUT {request.url.path}")
        if self.is_down:
            return _problem(503, "SVC-001", "not now")
        found = self.resources.get(request.path_params["path"].rpartition("/")[2])
        if found is None:
            return _problem(404, "NTF-001", "no such resource")
        status = await request.json()
        known = self.statuses.setdefault(found["id"], {})
        answer = judge(status, resource=found, known=known.get(status.get("adapter", "")))
        self.answers.append(answer)
        if answer == 400:
            return _problem(400, "VAL-000", "a status needs Applied, Available, Health and an integer generation")
        if answer == 201:
            known[status["adapter"]] = status
        return JSONResponse(status, status_code=201) if answer == 201 else Response(status_code=204)


def judge(status: Mapping[str, Any], *, resource: Mapping[str, Any], known: Mapping[str, Any] | None) -> int:
    """Return how the API answers a status."""
    told = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    generation = status.get("observed_generation")
    if not status.get("adapter") or not all(kind in told for kind in _MANDATORY) or type(generation) is not int:
        return 400
    if generation > resource["generation"]:
        return 204
    if known is None:
        return 201
    moment, before = instant.parse(status["observed_time"]), instant.parse(known["observed_time"])
    is_old = (generation, moment) < (known["observed_generation"], before)
    return 204 if is_old or told["Available"] == "Unknown" else 201


@contextmanager
def fake_hyperfleet() -> Iterator[FakeHyperFleet]:
    """Run one on a free port while entered."""
    found = FakeHyperFleet()
    with loop_thread("fake-hyperfleet") as loop, loop.entered(_served(found)):
        yield found


@asynccontextmanager
async def _served(found: FakeHyperFleet) -> Any:
    listener = HttpListener(found.app, host="127.0.0.1", port=0)
    async with asyncio.TaskGroup() as group:
        group.create_task(listener.serve(tls=None), name="fake-hyperfleet")
        found.url = f"http://127.0.0.1:{listener.port}"
        yield
        listener.stop()


def _problem(status: int, code: str, detail: str) -> Response:
    body = {"type": "about:blank", "title": detail, "status": status, "detail": detail, "code": f"HYPERFLEET-{code}"}
    return JSONResponse(body, status_code=status, media_type="application/problem+json")
