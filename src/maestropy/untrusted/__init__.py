"""Handle text and files of others: show them without control characters, read them within limits."""
