"""Connections of the client to Maestro's gRPC and REST APIs. Not public."""
