"""PostgreSQL tables of Maestro; the only package that contains SQL."""
