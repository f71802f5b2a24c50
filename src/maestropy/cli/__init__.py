"""The command line `maestro`."""
