"""Provide the Authorization header and the client certificate of each request.

Token files are read again, exec plugins run again before their credentials expire. It sends no request.
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
from maestropy.kube.config.address import Credentials, ExecPlugin, Pem
from maestropy.kube.errors import BadConfig
from maestropy.wire import json_types, timestamps
from maestropy.wire.errors import MalformedMessage

_REREAD_SECONDS = 10.0  # kubelet rotates a token long before it ends, so this is soon enough
_PLUGIN_SECONDS = 60.0
_EARLY = timedelta(seconds=30)  # a token must outlive the request that carries it


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAuth:
    """Authorization header and client certificate of a request."""

    authorization: str = field(default="", repr=False)
    certificate: Pem | None = None
    key: Pem | None = None
    expires: datetime | None = None


class RequestAuthSource:
    """Returns the current authentication of one set of credentials, and renews it."""

    def __init__(self, credentials: Credentials, *, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._lock = asyncio.Lock()
        self._auth: RequestAuth | None = None
        self._fresh_until = 0.0

    @property
    def can_renew(self) -> bool:
        """Whether a renewal may give other credentials."""
        return self._credentials.token_file is not None or self._credentials.plugin is not None

    async def current(self) -> RequestAuth:
        """Return the authentication for the next request; raises BadConfig if there is none."""
        if self._auth is not None and self._is_fresh(self._auth):
            return self._auth
        async with self._lock:  # many waiting requests run the plugin once
            if self._auth is None or not self._is_fresh(self._auth):
                self._auth = await self._renew_or_keep()
                self._fresh_until = self._clock.monotonic() + _REREAD_SECONDS
            return self._auth

    def reject(self, auth: RequestAuth) -> None:
        """Drop credentials that the API server rejected."""
        if self._auth is auth and self.can_renew:
            self._auth = None

    def _is_fresh(self, auth: RequestAuth) -> bool:
        if self._credentials.token_file is not None:
            return self._clock.monotonic() < self._fresh_until
        return auth.expires is None or self._clock.now() < auth.expires - _EARLY

    async def _renew_or_keep(self) -> RequestAuth:
        try:
            return await self._renew()
        except BadConfig:
            # A token file may be absent for a moment while it is replaced: the last token is used until it expires.
            if self._auth is None or (self._auth.expires is not None and self._auth.expires <= self._clock.now()):
                raise
            return self._auth

    async def _renew(self) -> RequestAuth:
        credentials = self._credentials
        if credentials.plugin is not None:
            return await run_plugin(credentials.plugin, environ=os.environ)
        if credentials.token_file is not None:
            authorization = f"Bearer {_read_token(credentials.token_file)}"
        elif credentials.token:
            authorization = f"Bearer {credentials.token}"
        elif credentials.username:
            pair = f"{credentials.username}:{credentials.password}".encode()
            authorization = f"Basic {base64.b64encode(pair).decode()}"
        else:
            authorization = ""
        return RequestAuth(
            authorization=authorization, certificate=credentials.client_certificate, key=credentials.client_key
        )


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise BadConfig(f"the token file {path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise BadConfig(f"the token file {path} holds no token") from error
    if not token or any(character.isspace() for character in token):
        raise BadConfig(f"the token file {path} holds no token")
    return token


async def run_plugin(plugin: ExecPlugin, *, environ: Mapping[str, str]) -> RequestAuth:
    """Run the program and return the credentials that it prints."""
    spec = {"interactive": False} | ({"cluster": plugin.cluster_info} if plugin.cluster_info is not None else {})
    info = orjson.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env={**environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": info},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # Its error output is for the operator and goes to ours.
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


def parse_exec_credential(output: bytes, *, plugin: ExecPlugin) -> RequestAuth:
    """Parse the output of a plugin. Pure; never quotes the output, which has secrets."""
    prefix = f"exec: {plugin.command} printed"
    try:
        document = json_types.decode_object(output, label="its output")
        token = json_types.text_at(document, "status", "token")
        certificate = json_types.text_at(document, "status", "clientCertificateData").encode()
        key = json_types.text_at(document, "status", "clientKeyData").encode()
        expiration = json_types.text_at(document, "status", "expirationTimestamp")
        expires = timestamps.parse(expiration).to_datetime() if expiration else None
    except MalformedMessage as error:
        raise BadConfig(f"{prefix} no ExecCredential") from error
    if document.get("kind") != "ExecCredential" or document.get("apiVersion") != plugin.api_version:
        raise BadConfig(f"{prefix} no ExecCredential of {plugin.api_version}")
    if bool(certificate) != bool(key):
        raise BadConfig(f"{prefix} only one of clientCertificateData and clientKeyData")
    if not token and not certificate:
        raise BadConfig(f"{prefix} neither a token nor a client certificate")
    return RequestAuth(
        authorization=f"Bearer {token}" if token else "",
        certificate=Pem(data=certificate) if certificate else None,
        key=Pem(data=key) if key else None,
        expires=expires,
    )
