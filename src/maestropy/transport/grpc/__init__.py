"""The CloudEventService over gRPC: server, client, and the transport of the agent."""
