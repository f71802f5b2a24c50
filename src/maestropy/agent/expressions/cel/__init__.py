"""Compile and evaluate CEL, the expression language of condition rules.

A small interpreter of our own, because an expression is untrusted input that runs inside the agent: every step is
charged to a budget, regular expressions take linear time, and the recursion depth is limited. Undeclared names are
detected at compile time; type errors show at evaluation.

Supported: CEL's standard operators, macros and functions; optional values (`a.?b`, `a[?b]`, `optMap`, `optFlatMap`,
`orValue`, …); the string extensions; Kubernetes' libraries for lists, regular expressions, URLs, quantities, IP
addresses, CIDRs and semantic versions; and `hasConditions(x)`. Not supported: protocol-buffer messages, Kubernetes'
`format` library, time zones by name, and the `%` verbs of `format` other than d, s, f, e, b, x, X and o.
"""
