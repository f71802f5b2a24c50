"""Trace spec requests through the logs of servers and agents: find the stage each one reached, and why it stopped."""
