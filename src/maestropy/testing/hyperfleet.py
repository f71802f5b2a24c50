"""Fake the HyperFleet API: clusters, node pools and adapter statuses, with the rules of the real API.

    with fake_hyperfleet() as hyperfleet:
        hyperfleet.put("Cluster", "abc", spec={...})
        ...
        hyperfleet.statuses["abc"]["controlplane"]["conditions"]

A status is stored (201), discarded without a reason (204) or rejected (400) by the rules in `hyperfleet_rules`. With
`required_adapters`, resources have the condition Reconciled, and `due_events` returns what the Sentinel would send:

        hyperfleet.required_adapters = ("controlplane",)
        for event in hyperfleet.due_events(): ...
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from maestropy.aio.clock import Clock
from maestropy.testing import hyperfleet_rules
from maestropy.testing.loop import loop_thread
from maestropy.transport.http.listener import HttpListener

_ROOT = "/api/hyperfleet/v1"


class FakeHyperFleet:
    """Resources and statuses in memory."""

    def __init__(self) -> None:
        self.url = ""
        """The address, while it runs."""
        self.resources: dict[str, dict[str, Any]] = {}
        self.statuses: dict[str, dict[str, dict[str, Any]]] = {}
        """Stored adapter statuses: by resource ID, by adapter."""
        self.status_codes: list[int] = []
        """The response code of every status request."""
        self.requests: list[str] = []
        """Every request so far, such as `GET /api/hyperfleet/v1/clusters/abc`."""
        self.required_adapters: tuple[str, ...] = ()
        """Adapters that must be available, or finalized, before a resource is reconciled."""
        self.clock = Clock()
        self.is_down = False
        """Whether it answers every request with 503."""
        self.app = Starlette(
            routes=[
                Route(f"{_ROOT}/{{path:path}}/statuses", self._put, methods=["PUT"]),
                Route(f"{_ROOT}/{{path:path}}", self._get, methods=["GET"]),
            ]
        )

    def put(
        self, kind: str, resource_id: str, *, spec: Mapping[str, Any], owner_id: str = "", **more: Any
    ) -> dict[str, Any]:
        """Create a resource, or change its spec, which increases the generation; returns its event."""
        before = self.resources.get(resource_id)
        base = f"{_ROOT}/clusters/{owner_id}/nodepools" if owner_id else f"{_ROOT}/clusters"
        generation = 1 if before is None else before["generation"] + (before["spec"] != dict(spec))
        resource: dict[str, Any] = {
            "id": resource_id,
            "kind": kind,
            "name": resource_id,
            "href": f"{base}/{resource_id}",
            "generation": generation,
            "spec": dict(spec),
            **({"owner_references": {"id": owner_id, "kind": "Cluster"}} if owner_id else {}),
            **more,
        }
        self.resources[resource_id] = resource
        return self.event(resource_id)

    def delete(self, resource_id: str) -> dict[str, Any]:
        """Request the deletion of a resource, which increases the generation; returns its event."""
        resource = self.resources[resource_id]
        self.resources[resource_id] = resource | {
            "deleted_time": "2026-01-01T00:00:00Z",
            "generation": resource["generation"] + 1,
        }
        return self.event(resource_id)

    def event(self, resource_id: str) -> dict[str, Any]:
        """Return the CloudEvent that asks adapters to reconcile a resource."""
        resource = self.resources[resource_id]
        names = ("id", "kind", "href", "generation", "owner_references")
        return {
            "specversion": "1.0",
            "type": f"com.redhat.hyperfleet.{resource['kind'].lower()}.reconcile",
            "source": "hyperfleet-sentinel",
            "id": f"{resource_id}-{resource['generation']}",
            "datacontenttype": "application/json",
            "data": {name: resource[name] for name in names if name in resource},
        }

    def reconciled(self, resource_id: str) -> dict[str, Any] | None:
        """Return the condition Reconciled of a resource; None before the first status that says something."""
        statuses = self.statuses.get(resource_id) or {}
        conclusive = [status for status in statuses.values() if _available(status) != "Unknown"]
        if not conclusive:
            return None
        resource = self.resources[resource_id]
        return hyperfleet_rules.reconciled(
            resource, required=self.required_adapters, statuses=statuses, now=self.clock.now()
        )

    def due_events(self, now: datetime | None = None) -> list[dict[str, Any]]:
        """Return the events that the Sentinel would send now; the real one looks every five seconds."""
        moment = now or self.clock.now()
        return [
            self.event(resource_id)
            for resource_id, resource in self.resources.items()
            if hyperfleet_rules.due(resource, self.reconciled(resource_id), now=moment)
        ]

    def condition(self, resource_id: str, adapter: str, kind: str) -> dict[str, str]:
        """Return a condition that an adapter reported."""
        conditions: list[dict[str, str]] = self.statuses[resource_id][adapter]["conditions"]
        return next(condition for condition in conditions if condition["type"] == kind)

    async def _get(self, request: Request) -> Response:
        self.requests.append(f"GET {request.url.path}")
        if self.is_down:
            return _problem(503, "SVC-001", "unavailable")
        resource = self.resources.get(request.path_params["path"].rpartition("/")[2])
        if resource is None:
            return _problem(404, "NTF-001", "no such resource")
        condition = self.reconciled(resource["id"]) if self.required_adapters else None
        return JSONResponse({**resource, "status": {"conditions": [condition]}} if condition else resource)

    async def _put(self, request: Request) -> Response:
        self.requests.append(f"PUT {request.url.path}")
        if self.is_down:
            return _problem(503, "SVC-001", "unavailable")
        resource = self.resources.get(request.path_params["path"].rpartition("/")[2])
        if resource is None:
            return _problem(404, "NTF-001", "no such resource")
        status = await request.json()
        statuses = self.statuses.setdefault(resource["id"], {})
        stored = statuses.get(status.get("adapter", ""))
        answer = hyperfleet_rules.answer(status, resource=resource, stored=stored, now=self.clock.now())
        self.status_codes.append(answer.code)
        if answer.code == 400:
            return _problem(400, "VAL-000", answer.detail)
        if answer.code == 201:
            statuses[status["adapter"]] = status
        return JSONResponse(status, status_code=201) if answer.code == 201 else Response(status_code=204)


def judge(status: Mapping[str, Any], *, resource: Mapping[str, Any], stored: Mapping[str, Any] | None) -> int:
    """Return the response code of the API for a status, whatever its age."""
    return hyperfleet_rules.answer(status, resource=resource, stored=stored).code


def _available(status: Mapping[str, Any]) -> str:
    return next((str(entry["status"]) for entry in status["conditions"] if entry.get("type") == "Available"), "Unknown")


@contextmanager
def fake_hyperfleet() -> Iterator[FakeHyperFleet]:
    """Run a fake HyperFleet API on a free port; a context manager."""
    api = FakeHyperFleet()
    with loop_thread("fake-hyperfleet") as loop, loop.entered(_served(api)):
        yield api


@asynccontextmanager
async def _served(api: FakeHyperFleet) -> Any:
    listener = HttpListener(api.app, host="127.0.0.1", port=0)
    async with asyncio.TaskGroup() as group:
        group.create_task(listener.serve(tls=None), name="fake-hyperfleet")
        api.url = f"http://127.0.0.1:{listener.port}"
        yield
        listener.stop()


def _problem(status: int, code: str, detail: str) -> Response:
    body = {"type": "about:blank", "title": detail, "status": status, "detail": detail, "code": f"HYPERFLEET-{code}"}
    return JSONResponse(body, status_code=status, media_type="application/problem+json")
