"""Run a sandbox Kubernetes API as a process of its own: `kube_program.py <directory> <port>`, until SIGTERM."""

import asyncio
import signal
import sys
from pathlib import Path

from maestropy.sandbox.kubeapi.cluster import SandboxCluster


async def main(directory: Path, port: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with SandboxCluster(directory=directory, port=port, tls=False, controllers=False):
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
