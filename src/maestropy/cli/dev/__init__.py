"""The commands `maestro up` and `maestro demo`."""
