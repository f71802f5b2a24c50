"""`maestro trace`: trace works, requests and hosted clusters."""
