"""Keep our proof of identity fresh: token files are read again, exec plugins run again before they expire.

Answers one question: with which header and which client certificate does the next request go? It sends no request.
"""

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import orjson

from maestropy.aio.clock import Clock
from maestropy.kube.address import Credentials, ExecPlugin, Pem
from maestropy.kube.errors import BadConfig
from maestropy.wire import instant, jsontypes
from maestropy.wire.errors import Malformed

_REREAD_SECONDS = 10.0  # kubelet rotates a token long before it ends, so this is soon enough
_PLUGIN_SECONDS = 60.0
_EARLY = timedelta(seconds=30)  # a token must outlive the request that carries it


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What goes with a request."""

    authorization: str = field(default="", repr=False)
    certificate: Pem | None = None
    key: Pem | None = None
    expires: datetime | None = None


class Keyring:
    """The proof of one set of credentials, renewed as it ages."""

    def __init__(self, credentials: Credentials, *, clock: Clock) -> None:
        self._given = credentials
        self._clock = clock
        self._lock = asyncio.Lock()
        self._proof: Proof | None = None
        self._fresh_until = 0.0

    @property
    def can_renew(self) -> bool:
        """Whether asking again may give another proof."""
        return self._given.token_file is not None or self._given.plugin is not None

    async def current(self) -> Proof:
        """Return the proof to send now; raises BadConfig when there is none."""
        if self._proof is not None and self._is_fresh(self._proof):
            return self._proof
        async with self._lock:  # a hundred waiting requests run the plugin once
            if self._proof is None or not self._is_fresh(self._proof):
                self._proof = await self._renew_or_keep()
                self._fresh_until = self._clock.monotonic() + _REREAD_SECONDS
            return self._proof

    def reject(self, proof: Proof) -> None:
        """Forget a proof the API server does not accept."""
        if self._proof is proof and self.can_renew:
            self._proof = None

    def _is_fresh(self, proof: Proof) -> bool:
        if self._given.token_file is not None:
            return self._clock.monotonic() < self._fresh_until
        return proof.expires is None or self._clock.now() < proof.expires - _EARLY

    async def _renew_or_keep(self) -> Proof:
        try:
            return await self._renew()
        except BadConfig:
            # A token file may be absent for a moment while it is replaced: what we have may serve until it ends.
            if self._proof is None or (self._proof.expires is not None and self._proof.expires <= self._clock.now()):
                raise
            return self._proof

    async def _renew(self) -> Proof:
        given = self._given
        if given.plugin is not None:
            return await run_plugin(given.plugin, environ=os.environ)
        if given.token_file is not None:
            authorization = f"Bearer {_read_token(given.token_file)}"
        elif given.token:
            authorization = f"Bearer {given.token}"
        elif given.username:
            pair = f"{given.username}:{given.password}".encode()
            authorization = f"Basic {base64.b64encode(pair).decode()}"
        else:
            authorization = ""
        return Proof(authorization=authorization, certificate=given.client_certificate, key=given.client_key)


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise BadConfig(f"the token file {path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise BadConfig(f"the token file {path} holds no token") from error
    if not token or any(each.isspace() for each in token):
        raise BadConfig(f"the token file {path} holds no token")
    return token


async def run_plugin(plugin: ExecPlugin, *, environ: Mapping[str, str]) -> Proof:
    """Run the program and return the proof it prints."""
    spec = {"interactive": False} | ({"cluster": plugin.cluster_info} if plugin.cluster_info is not None else {})
    info = orjson.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env={**environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": info},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # Its complaints are for the operator and go where ours go.
            stderr=None,
        )
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise BadConfig(f"exec: {plugin.command} cannot be run ({error.strerror}){hint}") from error
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise BadConfig(f"exec: {plugin.command} did not end within {_PLUGIN_SECONDS:g}s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise BadConfig(f"exec: {plugin.command} ended with status {process.returncode}")
    return parse_exec_credential(output, plugin=plugin)


def parse_exec_credential(output: bytes, *, plugin: ExecPlugin) -> Proof:
    """Return the proof in what a plugin printed. Pure; never quotes the output, which holds secrets."""
    what = f"exec: {plugin.command} printed"
    try:
        document = jsontypes.decode_object(output, what="its output")
        token = jsontypes.text_at(document, "status", "token")
        certificate = jsontypes.text_at(document, "status", "clientCertificateData").encode()
        key = jsontypes.text_at(document, "status", "clientKeyData").encode()
        ends = jsontypes.text_at(document, "status", "expirationTimestamp")
        expires = instant.parse(ends).to_datetime() if ends else None
    except Malformed as error:
        raise BadConfig(f"{what} no ExecCredential") from error
    if document.get("kind") != "ExecCredential" or document.get("apiVersion") != plugin.api_version:
        raise BadConfig(f"{what} no ExecCredential of {plugin.api_version}")
    if bool(certificate) != bool(key):
        raise BadConfig(f"{what} only one of clientCertificateData and clientKeyData")
    if not token and not certificate:
        raise BadConfig(f"{what} neither a token nor a client certificate")
    return Proof(
        authorization=f"Bearer {token}" if token else "",
        certificate=Pem(data=certificate) if certificate else None,
        key=Pem(data=key) if key else None,
        expires=expires,
    )
