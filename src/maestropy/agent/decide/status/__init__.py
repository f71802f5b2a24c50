"""Conditions, status feedback and condition rules of a work. Pure."""
