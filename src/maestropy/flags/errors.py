"""Define the error of invalid settings."""


class SettingsError(ValueError):
    """A setting is invalid; the message names the flag and the remedy."""
