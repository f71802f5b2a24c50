"""Statuses on their way up: updates of agents are taken in, ordered, written and dispatched to subscribers."""
