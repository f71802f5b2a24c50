"""Limits on the size of a search.

Each limit bounds the cost of a hostile search: in our own recursion, in that of PostgreSQL (which reports "stack depth
limit exceeded" for deep expressions), or in the planner. All are far above what clients send.
"""

MAX_BYTES = 64 * 1024
"""A client that watches many namespaces joins them all with `or`; about 800 of them fit."""

MAX_TOKENS = 10_000
"""Words, symbols and literals, so that a search of parentheses only is not tokenized to its end."""

MAX_DEPTH = 32
"""Nested parentheses and NOTs."""

MAX_TERMS = 1000
"""Comparisons in one search."""

MAX_LIST = 1000
"""Values of one IN list."""

MAX_JOINS = 10
"""Logical operators of a JSON path search; the number is part of the API's error text."""

MAX_PATH = 32
"""Keys of one JSON path."""

MAX_PATTERN = 1024
"""Characters of a LIKE pattern: PostgreSQL recurses once per `%` that matches."""

MAX_MATH = 20
"""Arithmetic operators in one search: with `MAX_DIGITS`, products stay far below numeric's overflow."""

MAX_DIGITS = 40
"""Digits of a number, and the largest power of ten it may reach in either direction."""

MAX_JSON_DEPTH = 64
"""Nesting of a JSON value given to `@>`."""
