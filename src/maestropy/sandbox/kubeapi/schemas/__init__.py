"""The served kinds and their schemas. Pure."""
