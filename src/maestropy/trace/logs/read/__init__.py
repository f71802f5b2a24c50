"""Read logs: bytes to log records."""
