"""Pure rules of the server: values in, verdicts out. No I/O, no clock."""
