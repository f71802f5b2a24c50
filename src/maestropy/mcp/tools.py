"""The tools without a transport: `maestro mcp`, tests and `maestro practice grade` call them through this module.

    from maestropy.mcp import tools

    async with tools.opened(tools.Options(archives=(Path("incident.tar.zst"),))) as box:
        for tool in box.listed:
            print(tool.name, tool.description, tool.schema)
        answer = await box.call("stuck", {})
        print(answer.text, answer.is_error, answer.cursor)

`call` never raises for what an assistant does wrong or a system refuses: it returns an answer whose `is_error` is true.
Only cancellation passes. One `Toolbox` is one session: cursors, evidence IDs and plans of actions belong to it;
`another()` gives a second session over the same systems.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from maestropy.mcp import answers, archive_system, definitions, live
from maestropy.mcp.answers import Answer as Answer
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.definitions import Arguments
from maestropy.mcp.definitions import Tool as Tool
from maestropy.mcp.live import LiveOptions as LiveOptions
from maestropy.trace.errors import InvalidArguments

Handler = Callable[[Any], Awaitable[Result]]
_MOST_LISTS: Final = 20
"""Lists that a session keeps for its cursors."""


class System(Protocol):
    """What the tools read: live systems, or an archive."""

    @property
    def description(self) -> str:
        """What answers call it."""

    def handlers(self) -> Mapping[str, Handler]:
        """Return the tools of one session; evidence and plans that they remember belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the tools read, and what they may do."""

    archives: tuple[Path, ...] = ()
    """Archives of `maestro diagnose collect`, the newest first; without any, live systems are read."""
    live: LiveOptions | None = None
    """How live systems are reached."""
    allows_actions: bool = False
    """Whether the tools that change something are offered; live systems only."""


class Toolbox:
    """The tools of one session."""

    def __init__(self, system: System, *, allows_actions: bool = False) -> None:
        self._system = system
        self._allows_actions = allows_actions
        self._handlers = system.handlers()
        self._lists: dict[str, Result] = {}
        self._count = 0
        self.listed = definitions.listed(allows_actions=allows_actions)
        """The tools that `call` knows."""

    @property
    def description(self) -> str:
        """What is read."""
        return self._system.description

    def another(self) -> "Toolbox":
        """Return a new session over the same systems."""
        return Toolbox(self._system, allows_actions=self._allows_actions)

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """Answer one call."""
        try:
            return await self._answer(name, arguments or {})
        except ToolError as error:
            return answers.failure(error)

    async def _answer(self, name: str, given: Mapping[str, Any]) -> Answer:
        tool = next((tool for tool in self.listed if tool.name == name), None)
        if tool is None:
            raise ToolError(
                f"there is no tool {name}", remedy=f"Use one of {', '.join(tool.name for tool in self.listed)}."
            )
        arguments = _checked(tool, given)
        if arguments.cursor:
            return self._continued(arguments.cursor, name)
        missing = [field for field in tool.required if not getattr(arguments, field)]
        if missing:
            raise ToolError(f"{name}: {', '.join(missing)} is missing", remedy="Give it; the schema says what it is.")
        try:
            async with asyncio.timeout(tool.seconds):
                result = await self._handlers[name](arguments)
        except TimeoutError:
            raise ToolError(
                f"{name} did not end within {tool.seconds:g} s",
                remedy="Narrow the question, for instance to one consumer or one work, or ask again.",
            ) from None
        self._count += 1
        return self._paged(result, key=f"{name}-{self._count}", start=0)

    def _continued(self, cursor: str, name: str) -> Answer:
        key, _, start = cursor.rpartition(":")
        result = self._lists.get(key)
        if result is None or not key.startswith(f"{name}-") or not start.isdecimal() or len(start) > 9:
            raise ToolError(
                f"the cursor {cursor} is not of {name} in this session, or its list is no longer kept",
                remedy=f"Call {name} again without a cursor.",
            )
        return self._paged(result, key=key, start=min(int(start), len(result.items)))

    def _paged(self, result: Result, *, key: str, start: int) -> Answer:
        # The longest cursor that it can be, so that the page has room for it.
        page = answers.page(result, origin=self._system.description, start=start, cursor=f"{key}:{len(result.items)}")
        model, end = page.model, start + page.shown
        cursor = ""
        if end < len(result.items):
            cursor = model["cursor"] = f"{key}:{end}"
            self._lists[key] = self._lists.pop(key, result)
            while len(self._lists) > _MOST_LISTS:
                self._lists.pop(next(iter(self._lists)))
        return Answer(text=answers.written(model), model=model, cursor=cursor)


def _checked(tool: Tool, given: Mapping[str, Any]) -> Arguments:
    try:
        return msgspec.convert(dict(given), tool.arguments)
    except msgspec.ValidationError as error:
        names = ", ".join(tool.schema["properties"])
        raise ToolError(f"{tool.name}: {error}", remedy=f"Its arguments are {names}.") from error


@asynccontextmanager
async def opened(options: Options) -> AsyncIterator[Toolbox]:
    """Open what the tools read, while entered; raise TraceError if it cannot be opened at all."""
    if options.archives:
        with archive_system.opened(options.archives) as system:
            yield Toolbox(system)
        return
    if options.live is None:
        raise InvalidArguments("neither an archive nor live systems are given")
    async with live.opened(options.live) as live_system:
        yield Toolbox(live_system, allows_actions=options.allows_actions)
