"""The REST API and the gRPC services for sources and agents."""
