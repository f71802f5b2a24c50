"""`maestro practice`: incidents to train with, and to grade assistants with."""
