"""The connection to PostgreSQL: its hosts, a pooler before it, the pool, notifications and advisory locks."""
