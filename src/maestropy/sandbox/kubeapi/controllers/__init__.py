"""The controllers of the sandbox cluster: garbage collection, custom resource definitions, workloads."""
