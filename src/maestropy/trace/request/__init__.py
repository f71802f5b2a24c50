"""Follow requests through the logs of servers and agents: where each one is, and why it stopped."""
