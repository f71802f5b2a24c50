"""Judge spec requests: the state of each stage, the verdict and its causes."""
