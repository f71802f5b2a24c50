"""Results of the tools, from values of the engines. Pure: no I/O, no clock, and no verdict of its own."""
