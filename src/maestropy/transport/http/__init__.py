"""HTTP listeners, their timeouts, and the Prometheus text format."""
