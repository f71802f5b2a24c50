"""Send and receive events over gRPC and MQTT, and serve HTTP; errors of the network libraries are translated here."""

import os

# gRPC reads these at its first import. No process forks without exec, and the messages of gRPC about forks on standard
# error would only confuse operators.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
