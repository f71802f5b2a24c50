"""Patches and server-side apply. Pure."""
