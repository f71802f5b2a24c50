"""PostgreSQL: the tables of Maestro, and the only place that speaks SQL."""
