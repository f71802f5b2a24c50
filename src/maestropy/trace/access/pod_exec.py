"""Run a program in a container through the API server, over a WebSocket: `kubectl exec -i` without kubectl.

Speaks `v5.channel.k8s.io` and `v4.channel.k8s.io`: each message begins with the number of its channel. Version 4 cannot
close the standard input, so the program must detect the end of its input by itself.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
from yarl import URL

from maestropy.aio.clock import Clock
from maestropy.kube import errors
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.config.credentials import RequestAuthSource
from maestropy.kube.config.tls import TlsContexts
from maestropy.trace.errors import NoAccess

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_MOST_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, and where."""

    namespace: str
    pod: str
    container: str = ""
    command: Sequence[str]
    stdin: bytes = b""


@dataclass(slots=True, kw_only=True)
class ExecOutcome:
    """What it wrote, and how it ended."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None
    """None if the connection ended before the program did."""
    problem: str = ""


async def run(address: ClusterAddress, program: Program, *, timeout_seconds: float, label: str) -> ExecOutcome:
    """Run a program to its end."""
    keyring = RequestAuthSource(address.credentials, clock=Clock())
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _run(address, program, keyring=keyring)
    except TimeoutError as error:
        raise NoAccess(
            f"{program.command[0]} in pod {program.pod} did not end within {timeout_seconds:.0f} s; raise --timeout"
        ) from error
    except errors.BadConfig as error:
        raise NoAccess(f"cluster {label}: {error.message}; check the kubeconfig") from error
    except aiohttp.WSServerHandshakeError as error:
        raise NoAccess(_rejection(error.status, program, label=label)) from error
    except aiohttp.ClientError as error:
        raise NoAccess(
            f"cluster {label} cannot be reached for an exec into {program.pod}; check the network"
        ) from error


async def _run(address: ClusterAddress, program: Program, *, keyring: RequestAuthSource) -> ExecOutcome:
    proof = await keyring.current()
    headers = [("Authorization", proof.authorization)] if proof.authorization else []
    outcome = ExecOutcome()
    async with (
        aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.ws_connect(
            _url(address, program),
            protocols=_PROTOCOLS,
            headers=[*headers, *address.credentials.impersonation],
            ssl=TlsContexts(address).current(proof) or True,
            server_hostname=address.tls_server_name or None,
            max_msg_size=0,
        ) as socket,
    ):
        await socket.send_bytes(bytes([_STDIN]) + program.stdin)
        if socket.protocol == _PROTOCOLS[0]:
            await socket.send_bytes(bytes([_CLOSE, _STDIN]))
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            _take(outcome, message.data)
    return outcome


def _url(address: ClusterAddress, program: Program) -> URL:
    path = f"/api/v1/namespaces/{quote(program.namespace, safe='')}/pods/{quote(program.pod, safe='')}/exec"
    query = [("command", argument) for argument in program.command]
    query += [("container", program.container)] if program.container else []
    query += [("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
    encoded = "&".join(f"{name}={quote(value, safe='')}" for name, value in query)
    return URL(f"{address.server}{path}?{encoded}", encoded=True)


def _take(outcome: ExecOutcome, message: bytes) -> None:
    channel, data = message[0], message[1:]
    if len(outcome.stdout) + len(outcome.stderr) + len(data) > _MOST_BYTES:
        raise NoAccess("the output of psql is larger than 512 MiB; narrow the query")
    if channel == _STDOUT:
        outcome.stdout += data
    elif channel == _STDERR:
        outcome.stderr += data
    elif channel == _ERROR:
        outcome.exit_code, outcome.problem = ending(data)


def ending(data: bytes) -> tuple[int | None, str]:
    """Read the Status that an exec ends with: the exit code, and the reason if there is no code."""
    try:
        status: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None, data.decode(errors="replace")[:300]
    if not isinstance(status, dict):
        return None, ""
    if status.get("status") == "Success":
        return 0, ""
    causes = (status.get("details") or {}).get("causes") or ()
    codes = [str(cause.get("message", "")) for cause in causes if cause.get("reason") == "ExitCode"]
    code = int(codes[0]) if codes and re.fullmatch(r"[0-9]{1,9}", codes[0]) else None
    return code, str(status.get("message", ""))[:300]


def _rejection(status: int, program: Program, *, label: str) -> str:
    reasons = {
        401: "the login is not accepted or has expired: log in again",
        403: f"request the permission; check with: kubectl auth can-i create pods/exec -n {program.namespace}",
        404: f"there is no pod {program.pod} in namespace {program.namespace}; list them again",
    }
    advice = reasons.get(status, "the API server may not support WebSockets for exec; use --db dsn or --db rest")
    return f"cluster {label} rejects an exec into pod {program.pod} (HTTP {status}): {advice}"
