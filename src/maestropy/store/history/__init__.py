"""The history in the database: its entries, and the partitions that hold them."""
