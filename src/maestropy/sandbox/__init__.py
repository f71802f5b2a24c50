"""Run the whole system on one computer: embedded PostgreSQL, MQTT broker, server process, sandbox clusters, agents."""
