"""Serve a Kubernetes API in this process, for laptops and fast tests.

Agents and kubectl reach it over HTTP on loopback, with a kubeconfig that it writes. It is not a cluster: no containers
run, no admission webhooks are called, no CEL validation rules are evaluated, nothing is encrypted at rest.
"""
