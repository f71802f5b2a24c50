"""What belongs to PostgreSQL as a server: its hosts, a pooler before it, and advisory locks."""
