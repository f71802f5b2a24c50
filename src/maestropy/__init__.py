"""Maestro in Python: server, agent, client and tracer of one protocol.

    from maestropy import AsyncMaestro, Maestro, Work, errors, targeting

The client is imported when one of its names is first used, so `import maestropy` costs nothing.
"""

# Type checkers take this name for true. Nothing is imported here: the command `maestro` is not ready for Ctrl-C yet.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from maestropy._version import __version__ as __version__
    from maestropy.sdk import errors as errors
    from maestropy.sdk import targeting as targeting
    from maestropy.sdk.blocking import Maestro as Maestro
    from maestropy.sdk.client import AsyncMaestro as AsyncMaestro
    from maestropy.sdk.consumers import Consumer as Consumer
    from maestropy.sdk.errors import MaestroError as MaestroError
    from maestropy.sdk.retry import RetryPolicy as RetryPolicy
    from maestropy.sdk.watch_events import EventType as EventType
    from maestropy.sdk.watch_events import WatchEvent as WatchEvent
    from maestropy.sdk.work import Work as Work
    from maestropy.sdk.works import AppliedMany as AppliedMany
    from maestropy.sdk.works import Progress as Progress

_CLIENT = {
    "AppliedMany": "works",
    "AsyncMaestro": "client",
    "Consumer": "consumers",
    "EventType": "watch_events",
    "Maestro": "blocking",
    "MaestroError": "errors",
    "Progress": "works",
    "RetryPolicy": "retry",
    "WatchEvent": "watch_events",
    "Work": "work",
    "errors": "errors",
    "targeting": "targeting",
}
"""The public names, and the module of `maestropy.sdk` that defines each."""

__all__ = [
    "AppliedMany",
    "AsyncMaestro",
    "Consumer",
    "EventType",
    "Maestro",
    "MaestroError",
    "Progress",
    "RetryPolicy",
    "WatchEvent",
    "Work",
    "errors",
    "targeting",
]


def _start() -> None:
    """Run the command `maestro` in this process; its console script calls this.

    Ctrl-C ends the process at once and without a traceback, as it ends other programs, until the command line handles
    it itself. That must begin as early as possible, so the function is in the module that Python imports first, and
    imports nothing before it but what the interpreter has built in.
    """
    import _signal  # type: ignore[import-not-found]  # noqa: PLC0415 - without a stub; `signal` would import more

    # A process that was started with Ctrl-C ignored, such as one with nohup, stays so.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    import importlib  # noqa: PLC0415 - after Ctrl-C is handled

    importlib.import_module("maestropy.cli.main").main()


def __getattr__(name: str) -> "Any":
    import importlib  # noqa: PLC0415 - `import maestropy` must not load the client

    if name == "__version__":
        return importlib.import_module("maestropy._version").__version__
    if name not in _CLIENT:
        raise AttributeError(f"module 'maestropy' has no attribute {name!r}")
    module = importlib.import_module(f"maestropy.sdk.{_CLIENT[name]}")
    return module if name == _CLIENT[name] else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
