"""Run the queries of an HCP walk live: services over HTTP, the management cluster by its API."""
