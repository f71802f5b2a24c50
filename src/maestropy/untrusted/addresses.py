"""Recognise addresses that hold a secret. Pure."""


def has_login(address: str) -> bool:
    """Return whether an address of an API may hold a user or password: errors and logs show addresses.

    An at sign anywhere counts, not only one before the host: a password may hold a slash or a hash.
    """
    return "@" in address
