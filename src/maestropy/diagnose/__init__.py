"""Collect what Maestro's components know into one archive without secrets, and analyse it offline.

`collect` reads, `redact` and `anonymise` clean, `archive` packs and unpacks, `analyze` asks the verdict engines of
`maestropy.trace`, and `report` writes. Nothing is written on a server, a database or a cluster.
"""
