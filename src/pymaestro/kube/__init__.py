"""The few questions the server asks a Kubernetes API server."""
