"""Metrics and log fields of the server."""
