"""The REST API: consumers and resource bundles over HTTP, as the Go Maestro speaks it."""
