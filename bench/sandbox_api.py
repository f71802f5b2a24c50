"""Run a sandbox Kubernetes API as a process of its own, for measures without a real kube-apiserver.

    python -m bench.sandbox_api <directory>

The first line on standard output is the path of its kubeconfig. For every line on standard input it prints how many
requests it has served, as JSON by verb and resource.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from maestropy.agent import crds
from maestropy.journal import emit
from maestropy.kube.client import KubeClient
from maestropy.kube.config import load as config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster


async def main(directory: Path) -> None:
    """Serve until standard input ends."""
    async with SandboxCluster(directory=directory, controllers=False) as cluster:
        # Go's agent does not install them.
        async with KubeClient(config.from_kubeconfig([cluster.kubeconfig])) as client:
            await crds.install(client, journal=emit.Journal(emit.stderr(), clock=time.time, verbosity=0))
        print(cluster.kubeconfig, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            counts = {f"{verb} {resource}": count for (verb, resource), count in cluster.request_counts.items()}
            print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
