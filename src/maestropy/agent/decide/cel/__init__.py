"""The expression language of condition rules: CEL, with what Maestro's users know from Kubernetes.

An own small interpreter, because an expression is foreign input that runs inside the agent: every step is counted and
paid from a budget, regular expressions take linear time, and nothing recurses deeper than a fixed level. Expressions
are checked for undeclared names when compiled, not for types: a type error shows when it is evaluated.

Known: CEL's standard operators, macros and functions; optional values (`a.?b`, `a[?b]`, `optMap`, `optFlatMap`,
`orValue`, …); the string extensions; Kubernetes' libraries for lists, regular expressions, URLs, quantities, addresses,
networks and semantic versions; and `hasConditions(x)`. Missing: protocol-buffer messages, Kubernetes' `format` library,
time zones by name, and the `%` verbs of `format` other than d, s, f, e, b, x, X and o.
"""
