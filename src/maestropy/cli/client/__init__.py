"""`maestro consumer` and `maestro resourcebundle`, and their shared flags, inputs and output."""
