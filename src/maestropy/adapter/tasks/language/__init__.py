"""Evaluate the languages of tasks: Go templates, CEL, and the operators of preconditions."""
