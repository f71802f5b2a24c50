"""A Kubernetes API in process, for laptops and fast tests.

It speaks real HTTP on loopback and writes a kubeconfig, so that agents and kubectl use it as any cluster. It refuses to
be one: no pods run, no webhooks are called, no CEL rules are evaluated, nothing is encrypted.
"""
