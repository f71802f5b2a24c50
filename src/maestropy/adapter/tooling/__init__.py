"""Tools for adapter authors: find an adapter, lint it, create a new one."""
