"""Store objects, serve list and watch from the store, and save it to a file."""
