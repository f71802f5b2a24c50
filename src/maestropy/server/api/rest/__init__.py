"""The REST API for consumers and resource bundles, compatible with Go Maestro."""
