"""The commands of `maestro check`, and `maestro server status` and `maestro agent status`."""
