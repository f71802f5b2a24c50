"""The part of Microsoft Entra that a pod with workload identity asks for a token, over HTTPS on loopback."""

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from tests.certificates import Authority

TENANT = "11111111-2222-3333-4444-555555555555"
CLIENT = "66666666-7777-8888-9999-000000000000"
ASSERTION = "the-projected-token-of-the-service-account"
SCOPE = "https://ossrdbms-aad.database.windows.net/.default"


class TokenEndpoint:
    """Issues tokens that expire soon, and makes each the password of the database user before it is sent."""

    def __init__(self, on_issue: Callable[[str], None]) -> None:
        self._on_issue = on_issue
        self._lock = threading.Lock()
        self.issued = 0
        self.lifetime_seconds = 2
        self.is_refusing = False
        self.port = 0

    def answer(self, path: str, form: dict[str, list[str]]) -> tuple[int, dict[str, object]]:
        wanted = {"client_id": CLIENT, "client_assertion": ASSERTION, "scope": SCOPE}
        sent = {name: form.get(name, [""])[0] for name in wanted}
        if path != f"/{TENANT}/oauth2/v2.0/token" or sent != wanted:
            return 400, {"error": "invalid_request", "error_description": f"AADSTS90014: not expected: {path}"}
        if self.is_refusing:
            return 401, {"error": "invalid_client", "error_description": "AADSTS700213: no matching identity record"}
        with self._lock:
            self.issued += 1
            token = f"eyJ.token-{self.issued}.sig"
            self._on_issue(token)
        return 200, {"token_type": "Bearer", "expires_in": self.lifetime_seconds, "access_token": token}

    def environ(self, folder: Path, authority: Authority) -> dict[str, str]:
        """Return what the webhook of workload identity puts into a pod, and the CA that the endpoint's is of."""
        (folder / "federated-token").write_text(ASSERTION)
        return {
            "AZURE_CLIENT_ID": CLIENT,
            "AZURE_TENANT_ID": TENANT,
            "AZURE_FEDERATED_TOKEN_FILE": str(folder / "federated-token"),
            "AZURE_AUTHORITY_HOST": f"https://localhost:{self.port}/",
            "SSL_CERT_FILE": str(authority.cert),
        }


@contextlib.contextmanager
def token_endpoint(authority: Authority, on_issue: Callable[[str], None]) -> Iterator[TokenEndpoint]:
    """Serve until the block ends."""
    endpoint = TokenEndpoint(on_issue)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            code, document = endpoint.answer(self.path, parse_qs(body))
            content = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    files = authority.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    endpoint.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
