"""Wiring of one server process: controllers, listeners, health, worker processes."""
