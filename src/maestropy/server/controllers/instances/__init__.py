"""How server instances share the work: which of them are ready, and which consumers each owns."""
