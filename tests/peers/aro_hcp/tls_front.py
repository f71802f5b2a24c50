"""TLS before a PostgreSQL that was built without it, as PostgreSQL itself begins it: after an SSLRequest."""

import contextlib
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator

from tests.certificates import Authority

_SSL_REQUEST = struct.pack("!II", 8, 80877103)


@contextlib.contextmanager
def tls_front(authority: Authority, *, port: int) -> Iterator[int]:
    """Yield a port that forwards to `port` over TLS; a connection that does not ask for TLS is closed."""
    files = authority.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if self.request.recv(8, socket.MSG_WAITALL) != _SSL_REQUEST:
                return
            self.request.sendall(b"S")
            with (
                contextlib.suppress(OSError),
                context.wrap_socket(self.request, server_side=True) as client,
                socket.create_connection(("127.0.0.1", port)) as database,
            ):
                back = threading.Thread(target=_forward, args=(database, client), daemon=True)
                back.start()
                _forward(client, database)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _forward(origin: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := origin.recv(65536):
            target.sendall(data)
    for side in (origin, target):
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
