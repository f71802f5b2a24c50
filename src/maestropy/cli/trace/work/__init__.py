"""`maestro trace work`."""
