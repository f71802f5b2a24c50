"""Hold the version of this distribution; the package metadata and every message take it from here."""

__version__ = "0.2.0"
