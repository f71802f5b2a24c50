"""Read-only questions to a Maestro database, by DSN. Identifiers travel as parameters, never as text of a statement."""
