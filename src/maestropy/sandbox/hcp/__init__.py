"""Run a practice fleet with a hosted control plane in a chosen state, for `maestro trace hcp`.

Server, agent and management cluster are those of this project. The RP frontend and Clusters Service are closed source,
so small stand-ins serve their documented responses. The operators of ACM and HyperShift are replaced by code that
writes the status which they would write.
"""
