"""Who may speak to the server, and for whom."""
