"""Specs on their way down: requests of sources are written, dispatched to agents, and deletions sent again."""
