"""The one error of the settings."""


class SettingsError(ValueError):
    """A setting that cannot be used; the message names its flag and the remedy."""
