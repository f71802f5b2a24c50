"""Read one page of a list: its condition and order, the IDs on it, and where the next page begins."""
