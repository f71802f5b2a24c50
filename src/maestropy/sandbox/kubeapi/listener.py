"""The port of a cluster that can end at once: clients of a test may hold idle connections open for ever."""

from maestropy.transport.http_listener import HttpListener


class Listener(HttpListener):
    """A listener whose connections can be cut."""

    def cut(self) -> None:
        """Drop every connection, as a machine that fails would."""
        server = self._server
        for connection in list(server.server_state.connections) if server else ():
            # Closing politely waits for the other side's goodbye when TLS is spoken.
            connection.transport.abort()
