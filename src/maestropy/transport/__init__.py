"""Moving events: one module per medium; the drivers' errors end here."""

import os

# gRPC reads these when it is first imported. Nothing of ours forks without exec, and what gRPC has to say about it on
# standard error means nothing to a user.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
