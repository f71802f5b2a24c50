"""How the tracer reaches clusters: which API server, as whom, and what is missing if it cannot."""
