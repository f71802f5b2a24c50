"""`maestro completion`: scripts for shells, and the candidates that they ask for."""
