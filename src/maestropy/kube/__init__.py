"""A small Kubernetes client: requests as values, one driver that sends them, one that watches. It knows no domain."""
