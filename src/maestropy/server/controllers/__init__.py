"""The server's controllers, writers and dispatchers: each reads the database, asks `decide` and acts."""
