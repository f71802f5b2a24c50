"""A fleet to practise on: a hosted control plane in a chosen state, to walk along with `maestro trace hcp`.

Maestro's server, the agent and the management cluster are the real ones of this project. The RP frontend and Clusters
Service are closed, so small stand-ins answer in their documented shapes; ACM's and HyperShift's operators are played by
writing the status that they would write.
"""
