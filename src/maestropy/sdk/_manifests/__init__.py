"""Manifests of a work: where they come from, their options, their status. Not public."""
