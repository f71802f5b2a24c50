"""Practice incidents: packaged archives of real incidents with their oracle, for people, assistants and tests."""
