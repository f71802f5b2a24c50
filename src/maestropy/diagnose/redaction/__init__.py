"""Hide what an archive must not contain: secrets by position, name and format, and names if that is wanted. Pure."""
