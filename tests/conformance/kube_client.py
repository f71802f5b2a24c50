"""The client of the cases in `kube_cases`: it calls the sandbox or a real API server and records the responses.

The records of two clusters can be compared: values that must differ (UIDs, versions, times) are replaced by names.
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
    """A cluster, the namespace of the test, and the responses so far."""

    api: httpx.Client
    namespace: str
    token_client: Callable[[str], httpx.Client]
    """Opens a client that authenticates with a token."""
    record: list[tuple[str, int, Any]] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def path(self, resource: str, name: str = "", *, group: str = "", namespace: str | None = "") -> str:
        """Return the path of a namespaced resource; `namespace=None` for a cluster-scoped one."""
        base = f"/apis/{group}" if group else "/api/v1"
        scope = "" if namespace is None else f"/namespaces/{namespace or self.namespace}"
        return f"{base}{scope}/{resource}" + (f"/{name}" if name else "")

    def call(self, method: str, path: str, body: Any = None, *, media: str = "", **query: Any) -> Json:
        """Send a request, record its response and return the content with the status code under `http`."""
        headers = {"User-Agent": "conformance/1"}
        payload = None
        if body is not None:
            headers["Content-Type"] = media or "application/json"
            payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        response = self.api.request(method, path, content=payload, headers=headers, params=query or None)
        try:
            content = response.json()
        except ValueError:
            # The response to an unknown path is a line of text.
            content = {"text": response.text}
        compared_query = {key: item for key, item in query.items() if key not in ("continue", "resourceVersion")}
        self.record.append((f"{method} {path} {compared_query}", response.status_code, self.comparable(content)))
        return {**content, "http": response.status_code}

    def ok(self, method: str, path: str, body: Any = None, *, media: str = "", **query: Any) -> Json:
        """Send a request that must succeed."""
        content = self.call(method, path, body, media=media, **query)
        assert content["http"] < 300, content
        return content

    def rejected(self, code: int, method: str, path: str, body: Any = None, *, media: str = "", **query: Any) -> Json:
        """Send a request that must be rejected with a Status."""
        content = self.call(method, path, body, media=media, **query)
        assert (content["http"], content.get("kind"), content.get("code")) == (code, "Status", code), content
        return content

    def apply(self, path: str, body: Json, *, manager: str, force: bool = False) -> Json:
        """Apply an object."""
        return self.call("PATCH", path, body, media=APPLY, fieldManager=manager, force=str(force).lower())

    def eventually(self, look: Callable[[], Any], *, what: str, seconds: float = 40) -> Any:
        """Wait until `look` returns a true value; its requests are not recorded."""
        end = time.monotonic() + seconds
        while True:
            mark = len(self.record)
            result = look()
            del self.record[mark:]
            if result:
                return result
            assert time.monotonic() < end, f"no {what} within {seconds} s"
            time.sleep(0.02)

    def is_not_found(self, path: str) -> bool:
        """Whether the path is answered with 404."""
        return bool(self.call("GET", path)["http"] == 404)

    @contextmanager
    def watch(self, path: str, **query: Any) -> Iterator[Iterator[Json]]:
        """Yield the events of a watch."""
        query = {"watch": "true", "timeoutSeconds": "10", **query}
        with self.api.stream("GET", path, params=query) as response:
            assert response.status_code == 200, response.read()
            yield (httpx.Response(200, text=line).json() for line in response.iter_lines() if line)

    def comparable(self, value: Any) -> Any:
        """Return content with names in place of values that differ from cluster to cluster."""
        if isinstance(value, dict):
            # Controllers write the status at any time.
            hidden = "status" if value.get("kind") in WORKLOADS else ""
            return {
                self._comparable_text(key): self._comparable_field(key, child)
                for key, child in sorted(value.items())
                if key != hidden
            }
        if isinstance(value, list):
            return [self.comparable(child) for child in value]
        return self._comparable_text(value) if isinstance(value, str) else value

    def _comparable_field(self, key: str, value: Any) -> Any:
        if key in ("resourceVersion", "continue") and value:
            return f"<{key}>"
        if key == "managedFields" and isinstance(value, list):
            own = [entry for entry in value if entry.get("manager") != CONTROLLERS]
            return sorted(
                (self.comparable(entry) for entry in own), key=lambda entry: json.dumps(entry, sort_keys=True)
            )
        if key == "causes":
            # Kubernetes checks some rules twice; the number of causes is not part of its API.
            causes = [self.comparable(cause) for number, cause in enumerate(value) if cause not in value[:number]]
            return sorted(causes, key=lambda cause: json.dumps(cause, sort_keys=True))
        return self.comparable(value)

    def _comparable_text(self, text: str) -> str:
        text = TIME.sub("<time>", text)
        text = re.sub(r"in record \(\d+\)", "in record (<version>)", text)
        text = ADDRESS.sub("<address>", text)
        return UID.sub(lambda match: self._names.setdefault(match[0], f"<uid {len(self._names)}>"), text)
