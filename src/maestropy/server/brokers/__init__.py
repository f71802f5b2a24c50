"""Message brokers: how specs reach agents and status updates come back."""
