"""The commands `maestro check server`, `maestro check agent`, `maestro server status` and `maestro agent status`."""
