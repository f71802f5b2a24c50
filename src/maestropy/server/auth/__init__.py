"""Authentication and authorization of sources, agents and REST clients."""
