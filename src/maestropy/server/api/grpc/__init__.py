"""The two gRPC services: one for sources, one for agents."""
