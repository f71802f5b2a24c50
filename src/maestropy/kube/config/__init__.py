"""Address, credentials and TLS of a Kubernetes API server."""
