"""Trace a work from any of its identifiers: work name, resource ID, applied works, manifests, live objects."""
