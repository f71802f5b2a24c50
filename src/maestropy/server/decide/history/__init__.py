"""Decide what the history records: of spec changes, of statuses, of refused requests, and for how long."""
