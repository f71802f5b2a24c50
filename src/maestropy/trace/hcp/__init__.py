"""From an Azure resource ID to the pod that blocks it: the walk along a hosted control plane.

Pure but for `offline`, which reads a directory, and `walk.run`, which awaits whoever answers questions. The hops say
what they want to know (`question`), somebody answers (`offline`, or `maestropy.trace.access.hcp`), and the hops judge.
"""
