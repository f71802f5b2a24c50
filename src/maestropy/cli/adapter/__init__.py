"""`maestro adapter`: create, lint, run and serve HyperFleet adapters."""
