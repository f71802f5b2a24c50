"""Pure rules of an adapter: which effects an event leads to, and which status report follows. No I/O."""
