"""An HTTP server on this machine whose every answer a test writes, down to where the bytes are cut.

async def answer(asked: Asked) -> Answer: ...
async with ScriptedApi(answer) as api, KubeClient(api.address()) as client: ...
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from maestropy.kube.config.address import ClusterAddress, Credentials


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Answer:
    """What to send: a whole body, or chunks as they come; `torn` ends the connection before the body is complete."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    chunks: AsyncIterator[bytes] | None = None
    torn: bool = False


Script = Callable[[Asked], Awaitable[Answer]]


def says(value: object, *, status: int = 200, **headers: str) -> Answer:
    return Answer(
        status=status,
        body=json.dumps(value).encode(),
        headers={"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()},
    )


def fails(code: int, reason: str, message: str = "said the server", **headers: str) -> Answer:
    """Return a failure as the API server words it."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return says(body | {"message": message, "reason": reason, "code": code}, status=code, **headers)


class ScriptedApi:
    """Serves on a free port while entered; remembers what it was asked."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._connections: set[asyncio.Task[Any]] = set()
        self.asked: list[Asked] = []
        self.failures: list[BaseException] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        assert not self.failures, self.failures

    async def stop(self) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def address(self, credentials: Credentials | None = None, **more: Any) -> ClusterAddress:
        scheme = "https" if self._tls else "http"
        server = f"{scheme}://127.0.0.1:{self.port}{more.pop('prefix', '')}"
        return ClusterAddress(server=server, credentials=credentials or Credentials(), **more)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except BaseException as error:
            self.failures.append(error)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in head[1:]) if name]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        asked = Asked(method, target, headers, await reader.readexactly(length))
        self.asked.append(asked)
        answer = await self._script(asked)
        lines = [f"HTTP/1.1 {answer.status} Test", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if answer.chunks is None:
            lines.append(f"Content-Length: {len(answer.body) + (10 if answer.torn else 0)}")
            writer.write("\r\n".join([*lines, "", ""]).encode() + answer.body)
            await writer.drain()
            return
        writer.write("\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode())
        async for chunk in answer.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        if not answer.torn:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
