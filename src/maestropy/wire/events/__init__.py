"""CloudEvents: the value, its bindings to gRPC, MQTT and JSON, and its stored form."""
