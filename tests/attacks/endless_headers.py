"""Send headers that do not end, on 50 connections, until standard input closes.

`python -m tests.attacks.endless_headers http|https PORT...` runs as a process of its own, so that its work does not
delay the measurements of a test.
"""

import asyncio
import contextlib
import ssl
import sys

CONNECTIONS = 50
_CHUNK = b"a" * 65536


async def attack(port: int, context: ssl.SSLContext | None) -> None:
    """Send on one connection, and on another one once the server has closed it."""
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            try:
                writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nX: ")
                while not reader.at_eof():
                    writer.write(_CHUNK)
                    await writer.drain()
                    await asyncio.sleep(0.005)
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.05)


async def main(scheme: str, ports: list[int]) -> None:
    """Attack the ports until standard input closes."""
    context = None
    if scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    attacks = [asyncio.ensure_future(attack(ports[number % len(ports)], context)) for number in range(CONNECTIONS)]
    await asyncio.to_thread(sys.stdin.read)
    for running in attacks:
        running.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], [int(port) for port in sys.argv[2:]]))
