"""Forward ports of pods to local ports, over the WebSocket protocols of kubectl and of this project's own client."""
