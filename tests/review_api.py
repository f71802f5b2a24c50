"""The two review endpoints of a Kubernetes API server, as small as they can be and honest in shape.

    async with ReviewApi(tokens={"t0ken": ("alice", ["devs"])}, grants={("alice", "/sources/s", "pub")}) as api:
        kubeconfig = api.write_kubeconfig(tmp_path)

Answers have the shape a v1.3x API server gives. It counts requests, can be told to hold them, to
answer with another status, and to be gone.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any, Self

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ReviewApi:
    """Serves on a free port of this machine while entered."""

    def __init__(
        self,
        *,
        tokens: dict[str, tuple[str, list[str]]] | None = None,
        grants: set[tuple[str, str, str]] | None = None,
    ) -> None:
        self.tokens = tokens or {}
        self.grants = grants or set()
        self.requests: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.credentials: set[str] = set()
        self.answer_with: tuple[int, str, str] | None = None
        """Status, content type and body to send instead of an answer."""
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Be gone: connections are refused from now on."""
        self.may_answer.set()
        self._server.close()
        await self._server.wait_closed()

    def write_kubeconfig(self, directory: Path, *, user: dict[str, str] | None = None) -> str:
        """Write a kubeconfig that leads here and return its path."""
        named = [{"name": "test", "user": user}] if user is not None else []
        context = {"cluster": "test"} | ({"user": "test"} if user is not None else {})
        path = directory / "kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "contexts": [{"name": "test", "context": context}],
            "users": named,
        }
        path.write_text(json.dumps(content))
        return str(path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        _, path, _ = head.split(" ", 2)
        self.requests[path] += 1
        self.bodies.append(body)
        self.credentials.add(headers.get("authorization", ""))
        await self.may_answer.wait()
        status, kind, text = self.answer_with or (201, "application/json", json.dumps(self._answer(path, body)))
        content_type = f"Content-Type: {kind}\r\n" if kind else ""
        payload = text.encode()
        writer.write(
            f"HTTP/1.1 {status} Test\r\n{content_type}Content-Length: {len(payload)}\r\n"
            f"Connection: close\r\n\r\n".encode()
            + payload
        )
        writer.close()

    def _answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        status = self._review_token(body["spec"]) if path == TOKENS else self._review_access(body["spec"])
        return body | {"metadata": {"creationTimestamp": None}, "status": status}

    def _review_token(self, spec: dict[str, Any]) -> dict[str, Any]:
        if spec["token"] not in self.tokens:
            return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
        user, groups = self.tokens[spec["token"]]
        return {
            "authenticated": True,
            "user": {
                "username": user,
                "uid": "7b1fbc7a-25f2-4e0b-a46a-53ea4f1a2b3e",
                "groups": groups,
                "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1c0e"]},
            },
            "audiences": ["https://kubernetes.default.svc.cluster.local"],
        }

    def _review_access(self, spec: dict[str, Any]) -> dict[str, Any]:
        wanted = spec["nonResourceAttributes"]
        if (spec["user"], wanted["path"], wanted["verb"]) in self.grants:
            return {"allowed": True, "reason": 'RBAC: allowed by ClusterRoleBinding "source"'}
        return {"allowed": False}


def status_body(code: int, reason: str) -> tuple[int, str, str]:
    """Return a failure as the API server words it."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{reason} said the server",
        "reason": reason,
        "code": code,
    }
    return code, "application/json", json.dumps(body)
