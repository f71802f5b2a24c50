"""The console: a client of the REST API that shows the fleet, its works and their requests in a browser."""
