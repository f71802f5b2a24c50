"""Listen on the port of a sandbox cluster, and abort connections that clients keep open when the cluster stops."""

from maestropy.transport.http.listener import HttpListener


class AbortableListener(HttpListener):
    """An HTTP listener whose connections can be aborted."""

    def abort_connections(self) -> None:
        """Abort every connection."""
        server = self._server
        for connection in list(server.server_state.connections) if server else ():
            # close() waits for the TLS close_notify of the client.
            connection.transport.abort()
