"""Collect what Maestro's components know into one archive without secrets, and analyse it offline.

`collection` reads, `redaction` cleans, `archive` packs and unpacks, and `analysis` asks the verdict engines of
`maestropy.trace` and reports. Nothing is written on a server, a database or a cluster.
"""
