"""Read, check, convert and run HyperFleet tasks: adapters that are written as YAML, schema version 2.0."""
