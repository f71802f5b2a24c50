"""Carry out the effects of an adapter: through Maestro, on a Kubernetes API, or from a recording."""
