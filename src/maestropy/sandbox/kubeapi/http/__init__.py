"""Serve the API over HTTP: request handlers, bodies, content negotiation, discovery, OpenAPI, TLS."""
