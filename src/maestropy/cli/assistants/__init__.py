"""The commands for assistants: `maestro mcp`, their tools, and `maestro skills`, their instructions."""
