"""The agent of one cluster: applies the works it receives, watches what became of them, and reports it."""
