"""The catalogue of findings and their explanation."""
