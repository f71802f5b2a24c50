"""The history: entries that belong to no other transaction, and how long entries are kept."""
