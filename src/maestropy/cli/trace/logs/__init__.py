"""`maestro trace request`, `requests`, `logs` and `explain`."""
