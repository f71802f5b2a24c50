"""Pure rules of the agent: what to write, what to delete, what to report. No I/O, no clock, no logging."""
