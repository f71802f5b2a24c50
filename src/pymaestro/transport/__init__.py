"""Moving events between processes, and knowing who is at the other end."""
