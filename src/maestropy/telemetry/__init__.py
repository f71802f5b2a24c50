"""Traces of OpenTelemetry: which trace a request belongs to, and how its spans are recorded and exported."""
