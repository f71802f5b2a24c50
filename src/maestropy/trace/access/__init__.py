"""Access to clusters, databases and logs for the tracer, with a remedy in every error."""
