"""Judge a whole walk: the blocking hop, contradictions, re-creations and next commands. Pure."""
