"""Build and format the report of a work trace. Pure."""
