"""Wiring of one agent process: controllers, leadership, health."""
