"""Analyse an unpacked archive offline: ask the verdict engines, judge components, rank, report and compare."""
