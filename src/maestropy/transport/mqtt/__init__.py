"""MQTT 5: the connection to a broker, its configuration, and the transport of the agent."""
