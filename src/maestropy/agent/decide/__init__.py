"""What the agent has to do and to say: values in, verdict out. No I/O, no clock, no logging."""
