"""A small Kubernetes client: requests as values, a client that sends them, and a watch. It knows nothing of works."""
