"""The commands `maestro server` and `maestro migration`."""
