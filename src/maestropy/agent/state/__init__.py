"""State that the agent keeps between two reconciles."""
