"""Source IDs that have a meaning; imports nothing, since the help of every command reads it."""

from typing import Final

COMMAND_LINE: Final = "maestro-cli"
"""The source ID of `maestro resourcebundle`, which subscribes only for `watch`."""
