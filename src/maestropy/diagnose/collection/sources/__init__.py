"""Read the systems that an archive is collected from: server, database, clusters and logs. Read-only."""
