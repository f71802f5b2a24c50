"""Admission, defaulting and validation of objects. Pure."""
