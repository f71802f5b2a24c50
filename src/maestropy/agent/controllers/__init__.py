"""The agent's controllers: each watches something and acts on it."""
