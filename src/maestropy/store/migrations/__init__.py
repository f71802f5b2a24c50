"""The migrations of the database, how they are applied, and how a database is compared with them."""
