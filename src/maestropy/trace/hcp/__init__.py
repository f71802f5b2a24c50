"""Trace a hosted control plane (HCP) from its Azure resource ID to the pod that blocks it.

Pure except `offline`, which reads a directory, and `walk.run`, which awaits query results. The hops define queries
(`query`), a runner returns results (`offline`, or `maestropy.trace.access.hcp.live_systems`), and the hops judge them.
"""
