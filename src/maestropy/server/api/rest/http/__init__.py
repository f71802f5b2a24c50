"""HTTP parts of the REST API: bodies, compression, middleware, routing, errors."""
