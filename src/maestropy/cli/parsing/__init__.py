"""Parse command lines of settings in Go's flag syntax, and render help pages."""
