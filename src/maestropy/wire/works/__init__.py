"""ManifestWorks: spec, options, status, validation, hashes."""
