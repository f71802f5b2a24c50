"""The Maestro server: stores spec requests, dispatches them to agents, and stores their status updates."""
