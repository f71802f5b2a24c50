"""Serve the WebSocket requests of a sandbox cluster: port-forwards to pods.

uvicorn hands a connection over when a request asks for a WebSocket; from then on aiohttp serves it. The API server
decides first, as for every request, who may do what.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from maestropy.sandbox.kubeapi.errors import StatusError, bad_request
from maestropy.sandbox.kubeapi.storage.store import StoredObject
from maestropy.sandbox.kubeapi.streams import forwarding, targets

Admit = Callable[[str, str, Mapping[str, str]], Awaitable[StoredObject]]
"""The pod that a request with this method, path and headers may be forwarded to; raises StatusError."""
_HEARTBEAT_SECONDS = 30.0
_SHUTDOWN_SECONDS = 0.3


class WebSocketUpgrades:
    """The WebSocket connections of one cluster."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        # Cancelled when its client goes away: a program that does not read must not keep the handler.
        self._server = web.Server(self._serve, access_log=None, handler_cancellation=True)

    def protocol(self, **_: Any) -> asyncio.Protocol:
        """Return the protocol of one connection; uvicorn's arguments are for its own protocols."""
        return self._server()

    async def shutdown(self) -> None:
        """End every connection."""
        await self._server.shutdown(_SHUTDOWN_SECONDS)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            pod = await self._admit(request.method, request.path, request.headers)
            protocol, port = _protocol(request)
        except StatusError as error:
            body = orjson.dumps(error.to_status())
            return web.Response(status=error.code, body=body, content_type="application/json")
        socket = web.WebSocketResponse(
            protocols=(protocol,),
            heartbeat=_HEARTBEAT_SECONDS,
            max_msg_size=forwarding.MAX_MESSAGE_BYTES,
            compress=False,
        )
        await socket.prepare(request)

        def local_port(number: int) -> int:
            return targets.local_port(pod.obj, number)

        if protocol == forwarding.SPDY:
            await forwarding.carry_spdy(socket, local_port)
        else:
            await forwarding.carry_channels(socket, port=port, targets=local_port)
        await socket.close()
        return socket


def _protocol(request: web.BaseRequest) -> tuple[str, int]:
    """Return the protocol that the client offers, and the port that a protocol with channels needs."""
    offered = [name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    chosen = next((name for name in forwarding.PROTOCOLS if name in offered), "")
    if chosen == forwarding.SPDY:
        return chosen, 0
    if not chosen:
        raise bad_request(f"the WebSocket protocol must be one of {', '.join(forwarding.PROTOCOLS)}")
    ports = request.query.getall("ports", [])
    try:
        [port] = [targets.port_number(text) for text in ports]
    except (targets.NoTarget, ValueError) as error:
        raise bad_request("give exactly one port of the pod, such as ?ports=80") from error
    return chosen, port
