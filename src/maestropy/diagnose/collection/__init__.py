"""Collect an archive: read the systems within a scope, stage what is redacted, and pack it."""
