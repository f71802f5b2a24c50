"""Google Pub/Sub: the connection to the service, its configuration, and the transport of the agent."""
