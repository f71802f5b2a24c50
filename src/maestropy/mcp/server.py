"""Offer the tools over the Model Context Protocol: standard input and output, or streamable HTTP.

The only module that imports the SDK of the protocol. It translates tools and answers, and has no rules of its own.
"""

import asyncio
import logging
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from maestropy import __version__
from maestropy.aio import tasks
from maestropy.mcp.definitions import Tool
from maestropy.mcp.http_gate import HttpGate
from maestropy.mcp.texts import NOTICE
from maestropy.mcp.tools import Toolbox
from maestropy.transport.http.limits import HttpLimits
from maestropy.transport.http.listener import HttpListener

PATH: Final = "/mcp"
_MOST_SESSIONS: Final = 100
_LONGEST_LINE: Final = 4 << 20
INSTRUCTIONS: Final = f"""\
Diagnose Maestro, which carries Kubernetes manifests (works) to the agents of target clusters (consumers) and brings \
their status back. Start with fleet or stuck; then trace_work for one work; explain for a code; trace_request and \
logs_around for logs; check for servers, agents, broker and database. Codes (MW-005, MT-301, MD-101) are verdicts of a \
deterministic engine: quote them with their evidence IDs, and do not invent others. What is listed under `unknown` is \
not known: say so. Continue long lists with the cursor. {NOTICE}"""


def server_of(box: Toolbox) -> Server[Any]:
    """Return a server of the protocol whose sessions have their own cursors, evidence and plans."""
    boxes: dict[str, Toolbox] = {}

    def box_of(session_id: str | None) -> Toolbox:
        # Standard input, and HTTP of the protocol without sessions: one session for the process.
        if session_id is None:
            return box
        if session_id not in boxes:
            boxes[session_id] = box.another()
            while len(boxes) > _MOST_SESSIONS:
                boxes.pop(next(iter(boxes)))
        return boxes[session_id]

    async def list_tools(_context: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(tool) for tool in box.listed])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await box_of(_session_id(context)).call(params.name, params.arguments)
        content = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[content], is_error=answer.is_error)

    return Server(
        "maestro",
        version=__version__,
        title="Maestro",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _session_id(context: Any) -> str | None:
    headers = getattr(getattr(context, "request", None), "headers", None)
    return headers.get("mcp-session-id") if headers is not None else None


def _tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read_only,
            destructive_hint=not tool.is_read_only,
            idempotent_hint=tool.is_read_only,
            open_world_hint=tool.is_open_world,
        ),
    )


async def serve_stdio(box: Toolbox) -> None:
    """Serve one client on standard input and output until it closes them, or the task is cancelled."""
    _quiet()
    server = server_of(box)
    async with AsyncExitStack() as stack:
        lines = await _standard_input(stack)
        read, write = await stack.enter_async_context(stdio_server(stdin=cast("anyio.AsyncFile[str] | None", lines)))
        await server.run(read, write, server.create_initialization_options())


class _InputLines:
    """The lines of standard input, without a thread: one that waits for a line could not be stopped."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def __aiter__(self) -> "_InputLines":
        return self

    async def __anext__(self) -> str:
        try:
            line = await self._reader.readline()
        except ValueError:
            # Longer than any request is: the rest of it is read as a line that cannot be parsed.
            return "{"
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


async def _standard_input(stack: AsyncExitStack) -> _InputLines | None:
    """Return the lines of standard input; None if it is a file, which the SDK then reads itself."""
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    except (ValueError, OSError):
        return None
    stack.callback(transport.close)
    return _InputLines(reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Where the server listens, and who may ask."""

    host: str = "127.0.0.1"
    port: int = 0
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "::1")
    """Names under which it may be asked."""
    token: str = ""
    tls: ssl.SSLContext | None = None


@asynccontextmanager
async def serve_http(box: Toolbox, options: HttpOptions) -> AsyncIterator[str]:
    """Serve streamable HTTP while entered; yield the address."""
    _quiet()
    server = server_of(box)
    # The gate checks Host and Origin of every request, also of those that the SDK answers itself.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=unchecked, max_sessions=_MOST_SESSIONS
    )
    gate = HttpGate(app=app, hosts=options.hosts, token=options.token)
    listener = HttpListener(gate, host=options.host, port=options.port, limits=HttpLimits())
    async with server.session_manager.run():
        serving = tasks.TaskOwner().start("mcp listener", listener.serve(tls=options.tls))
        try:
            scheme = "https" if options.tls else "http"
            host = f"[{options.host}]" if ":" in options.host else options.host
            yield f"{scheme}://{host}:{listener.port}{PATH}"
        finally:
            listener.stop()
            await serving


def _quiet() -> None:
    """Keep the SDK from logging arguments and addresses; its warnings are about clients."""
    logging.getLogger("mcp").setLevel(logging.ERROR)
    logging.getLogger("mcp").propagate = False
