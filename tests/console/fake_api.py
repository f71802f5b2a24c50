"""A REST API of Maestro in memory: as much of it as the console reads, for any number of works."""

import asyncio
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.retry import RetryPolicy
from maestropy.wire import ordering

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
_IDS = re.compile(r"id in \(([^)]*)\)")
_SINCE = re.compile(r"(\w+_at) >= '([^']*)'")
_ENTRIES = {
    "pause": "consumer.paused",
    "resume": "consumer.resumed",
    "resync": "consumer.resynced",
    "retirement": "consumer.retired",
    "adoption": "consumer.adopted",
    "resend": "work.resent",
    "sweep": "database.swept",
}
_NAME = re.compile(r"name = '([^']*)'")
_AFTER = re.compile(r"id > '([^']*)'")


def stamp(moment: datetime) -> str:
    """Return a time as the API writes it."""
    return moment.isoformat().replace("+00:00", "Z")


def condition(kind: str, *, ok: bool = True, message: str = "") -> dict[str, Any]:
    """Return a condition."""
    return {"type": kind, "status": "True" if ok else "False", "reason": "Reason", "message": message}


def bundle(number: int, **changes: Any) -> dict[str, Any]:
    """Return a healthy work."""
    created = stamp(NOW - timedelta(hours=2))
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"cm-{number}", "namespace": "default"}}
    work = {
        "kind": "ResourceBundle",
        "id": f"id-{number:07d}",
        "consumer_name": f"cluster{number % 10}",
        "version": 1,
        "created_at": created,
        "updated_at": created,
        "metadata": {"name": f"work-{number}", "labels": {"team": f"team{number % 7}"}},
        "manifests": [manifest],
        "manifest_configs": [],
        "status": status(1, [condition("Applied"), condition("Available")]),
    }
    return {**work, **changes}


def status(version: int, conditions: list[dict[str, Any]], manifests: Iterable[Any] = ()) -> dict[str, Any]:
    """Return a status that the agent sent an hour ago."""
    milliseconds = int((NOW - timedelta(hours=1)).timestamp() * 1000)
    return {
        "ObservedVersion": version,
        "SequenceID": str(ordering.next_id(0, now_ms=milliseconds)),
        "conditions": conditions,
        "resourceStatus": list(manifests),
    }


class FakeApi:
    """The API; change `bundles`, `entries` and `holds`, and the console sees it at its next read."""

    def __init__(self, bundles: Iterable[dict[str, Any]] = (), *, has_history: bool = True) -> None:
        self.bundles = {str(item["id"]): item for item in bundles}
        self.consumers = sorted({str(item["consumer_name"]) for item in self.bundles.values()})
        self.entries: list[dict[str, Any]] = []
        self.holds: list[dict[str, Any]] = []
        self.pauses: list[dict[str, Any]] = []
        self.has_history = has_history
        self.is_down = False
        self.answers: asyncio.Event | None = None
        """If given, requests are only answered when it is set, as by a server that hangs."""
        self.breaks_actions = False
        """Whether the connection breaks after an action was sent."""
        self.forbids_actions = False
        """Whether the role of the token is too low for every action."""
        self.refused: list[str] = []
        """The actions that were forbidden, which the history of a server has."""
        self.plan = "plan-1"
        self.actions: list[dict[str, Any]] = []
        """The bodies of the actions that were asked for, each with its `dryRun`."""
        self.requests: list[str] = []

    def client(self) -> AsyncMaestro:
        """Return a client of it."""
        return AsyncMaestro(
            environ={},
            api_url="http://api.localhost",
            retry=RetryPolicy(attempts=1),
            transport=httpx.MockTransport(self._answer),
        )

    def history(self, kind: str, work_id: str, *, seconds_ago: float = 1.0, **fields: Any) -> None:
        """Add an entry to the history."""
        number = len(self.entries) + 1
        time = stamp(datetime.now(UTC) - timedelta(seconds=seconds_ago))
        self.entries.append({"id": str(number), "kind": kind, "time": time, "resource_id": work_id, **fields})

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        if self.answers is not None:
            await self.answers.wait()
        return self._respond(request)

    def _respond(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(str(request.url))
        if self.is_down:
            raise httpx.ConnectError("connection refused")
        path = request.url.path.removeprefix("/api/maestro/v1")
        if request.method == "POST":
            return self._action(request, path.strip("/").split("/"))
        match path.strip("/").split("/"):
            case ["resource-bundles"]:
                return self._bundles(request)
            case ["consumers"]:
                wanted = _NAME.fullmatch(request.url.params.get("search", ""))
                names = [name for name in self.consumers if wanted is None or name == wanted[1]]
                items = [{"id": f"c-{name}", "name": name} for name in names]
                return _listed(request, items, kind="ConsumerList")
            case ["data-safety-holds"]:
                return _listed(request, self.holds, kind="DataSafetyHoldList")
            case ["delivery-pauses"]:
                return _listed(request, self.pauses, kind="DeliveryPauseList")
            case ["consumers", _, "data-safety-hold"] if not self.holds:
                return _not_found("kind", "the consumer has no data-safety hold")
            case ["consumers", _, "data-safety-hold"]:
                return _json({"kind": "DataSafetyHold", **self.holds[0]})
            case ["consumers", key, "history"] if self.has_history:
                return _history(entry for entry in self.entries if entry.get("consumer_name") == key)
            case ["resource-bundles", work_id, "history"] if self.has_history:
                return _history(entry for entry in self.entries if entry.get("resource_id") == work_id)
            case ["history"] if self.has_history:
                kinds = request.url.params.get("kind", "")
                return _history(entry for entry in self.entries if entry["kind"].startswith(kinds))
            case ["resource-bundles", work_id] if work_id in self.bundles:
                return _json(self.bundles[work_id])
            case ["resource-bundles", work_id]:
                return _not_found("kind", f"Resource with id='{work_id}' not found")
            case _:
                return _not_found("type", f"The requested resource '{path}' doesn't exist")

    def _action(self, request: httpx.Request, path: list[str]) -> httpx.Response:
        """Answer an operator action as a maestropy server does; a Go server does not know the path."""
        if not self.has_history:
            return _not_found("type", f"The requested resource '{'/'.join(path)}' doesn't exist")
        if self.breaks_actions:
            raise httpx.ReadError("")
        target, action = (path[1], path[-1]) if len(path) > 1 else ("", path[0])
        target = target.removeprefix("c-")
        dry_run = request.url.params.get("dryRun")
        if self.forbids_actions:
            self.refused.append(f"{action} {target}".strip())
            return _json({"kind": "Error", "code": "maestro-11", "reason": "it needs the role admin"}, status=403)
        body = orjson.loads(request.content)
        if path[0] == "consumers" and target not in self.consumers:
            return _not_found("kind", f"There is no consumer with the ID or name '{target}'")
        if action in ("retirement", "sweep") and not dry_run and body.get("plan") != self.plan:
            reason = f"The plan of {action} is not the one that was shown: works or rows have changed since"
            return _json({"kind": "Error", "code": "maestro-6", "reason": reason}, status=409)
        self.actions.append({**body, "action": action, "target": target, "dryRun": dry_run})
        if not dry_run:
            operation = request.headers["X-Operation-ID"]
            work_id = target if path[0] == "resource-bundles" else ""
            fields = {"consumer_name": "" if work_id else target, "operation_id": operation, "user": "ada"}
            detail = {"reason": body.get("reason", ""), "requested_by": body.get("requested_by", "")}
            self.history(_ENTRIES[action], work_id, seconds_ago=0, detail=detail, **fields)
        if action == "adoption" and not dry_run:
            return _json({"kind": "DataSafetyAdoption", "hold_id": body["hold_id"]}, status=201)
        named = [item for item in self.bundles.values() if target in (item["id"], item["consumer_name"])]
        works = [{"id": item["id"], "name": item["metadata"]["name"], "version": item["version"]} for item in named]
        answer = {
            "kind": "OperatorAction",
            "action": action,
            "changes": True,
            "consumer_name": target,
            "dry_run": bool(dry_run),
            "effects": [f"{action} {target}."],
            "warnings": ["be careful"],
            "works": works,
            "work_count": len(works),
            "plan": self.plan,
        }
        return _json(answer)

    def _bundles(self, request: httpx.Request) -> httpx.Response:
        if request.url.params.get("fields") and not self.has_history:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")  # as a Go server does
        search = request.url.params.get("search", "")
        items: Iterable[dict[str, Any]] = self.bundles.values()
        if ids := _IDS.search(search):
            wanted = {part.strip().strip("'") for part in ids[1].split(",")}
            items = [item for item in items if item["id"] in wanted]
        elif "source =" in search:
            items = [item for item in items if f"'{item.get('source', 'other')}'" in search]
        elif since := _SINCE.search(search):
            items = [item for item in items if str(item.get(since[1]) or "") >= since[2]]
        if after := _AFTER.search(search):
            items = [item for item in items if item["id"] > after[1]]
        # They are in the order of their IDs.
        return _listed(request, list(items), kind="ResourceBundleList")


def _history(entries: Iterable[dict[str, Any]]) -> httpx.Response:
    return _json({"kind": "HistoryList", "items": list(entries)})


def _not_found(member: str, reason: str) -> httpx.Response:
    return _json({member: "Error", "code": "maestro-7", "reason": reason}, status=404)


def _listed(request: httpx.Request, items: list[dict[str, Any]], *, kind: str) -> httpx.Response:
    parameters = request.url.params
    size, page = int(parameters.get("size", "100")), int(parameters.get("continue") or "1")
    start = (page - 1) * size
    shown = items[start : start + size]
    if fields := [name for name in parameters.get("fields", "").split(",") if name]:
        shown = [{key: item[key] for key in (*fields, "id") if key in item} for item in shown]
    headers = {"X-Maestro-Continue": str(page + 1)} if start + size < len(items) else {}
    body = {"kind": kind, "items": shown, "page": page, "size": len(shown), "total": len(items)}
    return _json(body, headers=headers)


def _json(body: object, *, status: int = 200, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, content=orjson.dumps(body), headers=headers)
