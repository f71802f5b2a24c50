"""Define the error of input that exceeds a limit."""


class InputRejected(Exception):
    """The input exceeds a limit; the message names the input and the limit."""
