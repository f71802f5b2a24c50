"""Read kubeconfig files into one cluster address.

A file that could select another server or user than its author meant is rejected; the error names the file, the entry
and the field.

| in the file | here |
|---|---|
| several files | the first that names an entry, or a current-context, wins; missing ones are skipped unless all are |
| relative paths | start at the folder of the file that names them |
| no current-context, context of an unknown cluster or user | rejected |
| context without a user | anonymous requests |
| server without http:// or https:// | rejected |
| certificate data and a certificate file | the data wins |
| certificate without key, key without certificate | rejected |
| certificate-authority with insecure-skip-tls-verify | rejected: one of them is a mistake |
| a file that cannot be read | rejected at the start, not at the first request |
| token and tokenFile | the file wins |
| token together with username | rejected |
| token, tokenFile or username together with exec | the program is not run |
| exec with interactiveMode Always | rejected: a service has no terminal |
| auth-provider | rejected, names exec as the remedy |
| proxy-url | rejected; HTTPS_PROXY is not read either |
| as, as-groups, as-uid | impersonates; as-user-extra is rejected |
| unknown fields | ignored |
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from maestropy.kube.config.address import ClusterAddress, Credentials, ExecPlugin, Pem
from maestropy.kube.errors import BadConfig
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected
from maestropy.wire import json_types
from maestropy.wire.errors import MalformedMessage

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


def read(paths: Sequence[Path], *, context: str = "") -> ClusterAddress:
    """Return the address of `context`, or of the current context, from the merged files."""
    documents = [_Document(path=path, content=_load(path)) for path in paths if len(paths) == 1 or path.exists()]
    if not documents:
        raise BadConfig(f"KUBECONFIG: none of {', '.join(map(str, paths))} exists")
    chosen = context or next(filter(None, (document.text("current-context") for document in documents)), "")
    if not chosen:
        raise BadConfig(f"{paths[0]}: current-context is not set; name a context")
    entry = _find(documents, "context", chosen)
    if entry is None:
        raise BadConfig(f"{paths[0]}: there is no context {chosen!r}")
    return _address(documents, entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    path: Path
    content: Mapping[str, Any]

    def text(self, name: str) -> str:
        try:
            return json_types.text_at(self.content, name)
        except MalformedMessage as error:
            raise BadConfig(f"{self.path}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One named cluster, user or context with its file."""

    document: _Document
    label: str
    content: Mapping[str, Any]

    def bad(self, field: str, problem: str) -> BadConfig:
        return BadConfig(f"{self.document.path}: {self.label}: {field} {problem}")

    def text(self, *path: str) -> str:
        try:
            return json_types.text_at(self.content, *path)
        except MalformedMessage as error:
            raise BadConfig(f"{self.document.path}: {self.label}: {error}") from error

    def flag(self, name: str) -> bool:
        try:
            return json_types.boolean_at(self.content, name)
        except MalformedMessage as error:
            raise BadConfig(f"{self.document.path}: {self.label}: {error}") from error

    def texts(self, *path: str) -> Sequence[str]:
        try:
            return json_types.texts_at(self.content, *path)
        except MalformedMessage as error:
            raise BadConfig(f"{self.document.path}: {self.label}: {error}") from error

    def objects(self, *path: str) -> Sequence[json_types.Object]:
        try:
            return json_types.objects_at(self.content, *path)
        except MalformedMessage as error:
            raise BadConfig(f"{self.document.path}: {self.label}: {error}") from error

    def file(self, name: str) -> Path | None:
        """Return the path in a field; it must be readable now, so that a mistake fails the start."""
        value = self.text(name)
        if not value:
            return None
        path = self.document.path.absolute().parent / value
        try:
            path.open("rb").close()
        except OSError as error:
            raise self.bad(name, f"names {path}, which cannot be read ({error.strerror})") from error
        return path

    def pem(self, name: str) -> Pem | None:
        data = self.text(f"{name}-data")
        if not data:
            path = self.file(name)
            return Pem(file=path) if path else None
        try:
            return Pem(data=base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise self.bad(f"{name}-data", "is not base64") from error


def _load(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml_documents.load(files.read(path, most=files.CONFIG_BYTES))
    except InputRejected as error:
        raise BadConfig(f"{path} is not a kubeconfig: {error}") from error
    except OSError as error:
        raise BadConfig(f"{path} cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # The cause may quote the file, and the file has credentials.
        raise BadConfig(f"{path} is not a kubeconfig: it is not YAML") from error
    if not isinstance(content, Mapping):
        raise BadConfig(f"{path} is not a kubeconfig: it holds no object")
    return content


def _find(documents: Sequence[_Document], entry_kind: str, name: str) -> _Entry | None:
    """Return the first entry of that name; `entry_kind` is `cluster`, `user` or `context`."""
    for document in documents:
        try:
            for item in json_types.objects_at(document.content, f"{entry_kind}s"):
                if item.get("name") == name:
                    label = f"{entry_kind} {name!r}"
                    return _Entry(document=document, label=label, content=json_types.object_at(item, entry_kind))
        except MalformedMessage as error:
            raise BadConfig(f"{document.path}: {error}") from error
    return None


def _address(documents: Sequence[_Document], context: _Entry) -> ClusterAddress:
    cluster_name, user_name = context.text("cluster"), context.text("user")
    cluster = _find(documents, "cluster", cluster_name)
    if cluster is None:
        raise context.bad("cluster", f"names {cluster_name!r}, which is not in clusters")
    user = _find(documents, "user", user_name) if user_name else None
    if user_name and user is None:
        raise context.bad("user", f"names {user_name!r}, which is not in users")
    ca = cluster.pem("certificate-authority")
    skip = cluster.flag("insecure-skip-tls-verify")
    if ca is not None and skip:
        raise cluster.bad("insecure-skip-tls-verify", "is set together with a certificate-authority; choose one")
    if cluster.text("proxy-url"):
        raise cluster.bad("proxy-url", "is not supported; give the agent a direct way to the API server")
    return ClusterAddress(
        server=_server(cluster),
        ca=ca,
        tls_server_name=cluster.text("tls-server-name"),
        skip_tls_verify=skip,
        credentials=_credentials(user, cluster=cluster) if user else Credentials(),
        namespace=context.text("namespace") or "default",
        origin=f"{context.document.path}: {context.label}",
    )


def _server(cluster: _Entry) -> str:
    server = cluster.text("server").rstrip("/")
    scheme, separator, host = server.partition("://")
    if not separator or scheme not in {"http", "https"} or not host or "?" in host or "#" in host or "@" in host:
        raise cluster.bad("server", "must be an address such as https://host:6443")
    return server


def _credentials(user: _Entry, *, cluster: _Entry) -> Credentials:
    if user.content.get("auth-provider") is not None:
        raise user.bad("auth-provider", "is not supported, as in kubectl since 1.26; use exec")
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    if (certificate is None) != (key is None):
        present, missing = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        raise user.bad(present, f"is set but {missing} is not; set both or none")
    token, token_file, username = user.text("token"), user.file("tokenFile"), user.text("username")
    if username and (token or token_file):
        raise user.bad("username", "is set together with a token; choose one")
    has_secret = bool(token or token_file or username)
    return Credentials(
        token="" if token_file else token,
        token_file=token_file,
        username=username,
        password=user.text("password"),
        client_certificate=certificate,
        client_key=key,
        plugin=None if has_secret else _plugin(user, cluster=cluster),
        impersonation=_impersonation(user),
    )


def _impersonation(user: _Entry) -> tuple[tuple[str, str], ...]:
    if user.content.get("as-user-extra"):
        raise user.bad("as-user-extra", "is not supported; remove it")
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    if (uid or groups) and not name:
        raise user.bad("as-groups and as-uid", "need as, the user they belong to")
    named = [("Impersonate-User", name), ("Impersonate-Uid", uid)]
    return (*((header, value) for header, value in named if value), *(("Impersonate-Group", group) for group in groups))


def _plugin(user: _Entry, *, cluster: _Entry) -> ExecPlugin | None:
    if user.content.get("exec") is None:
        return None
    api_version, command = user.text("exec", "apiVersion"), user.text("exec", "command")
    if api_version not in _EXEC_VERSIONS:
        raise user.bad("exec.apiVersion", f"must be one of {', '.join(_EXEC_VERSIONS)}")
    if not command:
        raise user.bad("exec.command", "is missing")
    if user.text("exec", "interactiveMode") == "Always":
        raise user.bad("exec.interactiveMode", "is Always, but there is no terminal; use a program that does not ask")
    environment = tuple(
        (str(variable.get("name", "")), str(variable.get("value", ""))) for variable in user.objects("exec", "env")
    )
    return ExecPlugin(
        api_version=api_version,
        # As in kubectl: with a slash it is a path relative to the file, without one it is looked up in PATH.
        command=str(user.document.path.absolute().parent / command) if "/" in command else command,
        arguments=tuple(user.texts("exec", "args")),
        environment=environment,
        cluster_info=_cluster_info(cluster) if user.content["exec"].get("provideClusterInfo") is True else None,
        install_hint=user.text("exec", "installHint"),
    )


def _cluster_info(cluster: _Entry) -> Mapping[str, object]:
    """Return the cluster information for a plugin: fields, certificates as data, and the exec extension."""
    ca = cluster.pem("certificate-authority")
    data = (ca.file.read_bytes() if ca.file else ca.data) if ca else b""
    config = next(
        (
            extension.get("extension")
            for extension in cluster.objects("extensions")
            if extension.get("name") == "client.authentication.k8s.io/exec"
        ),
        None,
    )
    info = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(data).decode(),
        "config": config,
    }
    return {name: value for name, value in info.items() if value}
