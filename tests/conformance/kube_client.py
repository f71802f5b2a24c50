"""What the cases in `kube_cases` speak to: any Kubernetes API, the sandbox or a real one, and a record of its answers.

The record makes two clusters comparable: whatever must differ (ids, versions, times) is replaced by a name for it.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CONTROLLERS = "kube-controller-manager"
WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "PodDisruptionBudget", "Job", "CronJob")
ADDRESS = re.compile(r"10\.\d+\.\d+\.\d+")


@dataclass(kw_only=True)
class Kube:
    """A cluster, a namespace of the test's own, and what was answered so far."""

    api: httpx.Client
    namespace: str
    token_client: Callable[[str], httpx.Client]
    """Opens a client for whoever has a token."""
    record: list[tuple[str, int, Any]] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def path(self, resource: str, name: str = "", *, group: str = "", namespace: str | None = "") -> str:
        """Return the path of a namespaced resource; `namespace=None` for one without."""
        base = f"/apis/{group}" if group else "/api/v1"
        scope = "" if namespace is None else f"/namespaces/{namespace or self.namespace}"
        return f"{base}{scope}/{resource}" + (f"/{name}" if name else "")

    def call(self, method: str, path: str, body: Any = None, *, media: str = "", **query: Any) -> Json:
        """Send a request, write its answer down and return it with its `code` under `http`."""
        headers = {"User-Agent": "conformance/1"}
        content = None
        if body is not None:
            headers["Content-Type"] = media or "application/json"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        response = self.api.request(method, path, content=content, headers=headers, params=query or None)
        try:
            answer = response.json()
        except ValueError:
            # Paths nobody serves are answered with a line of text.
            answer = {"text": response.text}
        told = {key: each for key, each in query.items() if key not in ("continue", "resourceVersion")}
        self.record.append((f"{method} {path} {told}", response.status_code, self.comparable(answer)))
        return {**answer, "http": response.status_code}

    def ok(self, method: str, path: str, body: Any = None, *, media: str = "", **query: Any) -> Json:
        """Send a request that must succeed."""
        answer = self.call(method, path, body, media=media, **query)
        assert answer["http"] < 300, answer
        return answer

    def refused(self, code: int, method: str, path: str, body: Any = None, *, media: str = "", **query: Any) -> Json:
        """Send a request that must be refused with a Status."""
        answer = self.call(method, path, body, media=media, **query)
        assert (answer["http"], answer.get("kind"), answer.get("code")) == (code, "Status", code), answer
        return answer

    def apply(self, path: str, body: Json, *, manager: str, force: bool = False) -> Json:
        """Apply an object."""
        return self.call("PATCH", path, body, media=APPLY, fieldManager=manager, force=str(force).lower())

    def eventually(self, look: Callable[[], Any], *, what: str, seconds: float = 40) -> Any:
        """Wait until `look` finds something; what it sees on the way is not compared."""
        end = time.monotonic() + seconds
        while True:
            mark = len(self.record)
            found = look()
            del self.record[mark:]
            if found:
                return found
            assert time.monotonic() < end, f"no {what} within {seconds} s"
            time.sleep(0.02)

    def gone(self, path: str) -> bool:
        """Whether nothing is there."""
        return bool(self.call("GET", path)["http"] == 404)

    @contextmanager
    def watch(self, path: str, **query: Any) -> Iterator[Iterator[Json]]:
        """Yield the events of a watch."""
        query = {"watch": "true", "timeoutSeconds": "10", **query}
        with self.api.stream("GET", path, params=query) as response:
            assert response.status_code == 200, response.read()
            yield (httpx.Response(200, text=line).json() for line in response.iter_lines() if line)

    def comparable(self, value: Any) -> Any:
        """Return an answer with names for what differs from cluster to cluster."""
        if isinstance(value, dict):
            # What controllers write comes when it comes.
            hidden = "status" if value.get("kind") in WORKLOADS else ""
            return {
                self._comparable_text(key): self._comparable_field(key, each)
                for key, each in sorted(value.items())
                if key != hidden
            }
        if isinstance(value, list):
            return [self.comparable(each) for each in value]
        return self._comparable_text(value) if isinstance(value, str) else value

    def _comparable_field(self, key: str, value: Any) -> Any:
        if key in ("resourceVersion", "continue") and value:
            return f"<{key}>"
        if key == "managedFields" and isinstance(value, list):
            own = [each for each in value if each.get("manager") != CONTROLLERS]
            return sorted((self.comparable(each) for each in own), key=lambda each: json.dumps(each, sort_keys=True))
        if key == "causes":
            # Some rules are checked twice in Kubernetes; that is no promise.
            causes = [self.comparable(each) for number, each in enumerate(value) if each not in value[:number]]
            return sorted(causes, key=lambda each: json.dumps(each, sort_keys=True))
        return self.comparable(value)

    def _comparable_text(self, text: str) -> str:
        text = TIME.sub("<time>", text)
        text = re.sub(r"in record \(\d+\)", "in record (<version>)", text)
        text = ADDRESS.sub("<address>", text)
        return UID.sub(lambda found: self._names.setdefault(found[0], f"<uid {len(self._names)}>"), text)
