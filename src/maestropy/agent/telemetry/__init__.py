"""Metrics and log fields of the agent."""
