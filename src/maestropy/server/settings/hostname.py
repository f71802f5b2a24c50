"""Check the name that the listeners bind to, before the database is opened. Asks the resolver of this host."""

import socket

from maestropy.flags import SettingsError
from maestropy.server.settings.model import ServerSettings


def check_hostname(settings: ServerSettings) -> None:
    """Raise SettingsError if --server-hostname has no address."""
    hostname = settings.http.hostname
    try:
        socket.getaddrinfo(hostname or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise SettingsError(
            f"--server-hostname={hostname} cannot be resolved; give an address of this host, or leave it empty for "
            "all interfaces"
        ) from error
