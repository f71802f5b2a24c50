"""Shared parts of the dispatchers: the wake-up loop and the ordered sender of specs."""
