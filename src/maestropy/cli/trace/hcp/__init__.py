"""`maestro trace hcp`."""
