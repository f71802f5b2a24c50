"""Word how this distribution is installed: its name, its wheel, its extras, and the command that hints show.

maestropy is not published on a package index, so nothing here tells a user to install the bare name: an index could
serve another project under it. Every hint and the adapter scaffold take their command from here.
"""

from typing import Literal, get_args

from maestropy._version import __version__

DISTRIBUTION = "maestropy"
WHEEL = f"{DISTRIBUTION}-{__version__}-py3-none-any.whl"
"""The file that `make wheel` writes to `dist/`."""

Extra = Literal["server", "agent", "trace", "diagnose", "embedded", "azure", "pubsub", "rabbitmq", "otel", "mcp", "all"]
EXTRAS: tuple[Extra, ...] = get_args(Extra)


def requirement(path: str, extra: Extra) -> str:
    """Return what pip takes to install a folder or a wheel file with an extra."""
    return f"{path}[{extra}]"


def hint(extra: Extra) -> str:
    """Return what a user does to install this project with an extra."""
    return f"run pip install '{requirement('.', extra)}' in a clone of {DISTRIBUTION}"
