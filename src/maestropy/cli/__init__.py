"""The command `maestro`."""
