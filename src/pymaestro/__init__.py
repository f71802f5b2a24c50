"""Maestro in Python: server, agent, client and tracer of one protocol."""

__version__ = "0.1.0"
