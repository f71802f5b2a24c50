"""How fast, side by side with the Go Maestro, in one run."""
