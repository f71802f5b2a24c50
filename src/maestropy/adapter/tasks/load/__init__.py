"""Read task and deployment files, and report every problem that HyperFleet's loader reports."""
