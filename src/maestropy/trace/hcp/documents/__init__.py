"""Recognise, decode, match and save the documents of a walk."""
