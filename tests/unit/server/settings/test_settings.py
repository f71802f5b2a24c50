"""Settings of the server: flags, environment, checks and the choice of the database."""

import dataclasses
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from maestropy.flags.help_text import help_texts
from maestropy.server.settings import (
    ServerSettings,
    SettingsError,
    check_broker_file,
    listening_address,
    load,
    locate,
    reading_address,
)
from maestropy.server.settings.console_login import read_secret
from maestropy.server.settings.load import FLAGS
from maestropy.store.dsn import Dsn, Host

HOME = {"HOME": "/home/me"}
LOGIN = {
    "--enable-console": "true",
    "--rest-authn-type": "jwt",
    "--jwks-file": "f",
    "--console-oidc-issuer-url": "https://login.example",
    "--console-oidc-client-id": "console",
    "--console-oidc-client-secret-file": "secret",
    "--console-oidc-redirect-url": "https://maestro.example/console/login/callback",
}

# What the charts of Go Maestro say behind a service mesh.
MESH = {"--enable-https": "false"}

# Flag and default of the Go server; what differs on purpose is not here.
REFERENCE_DEFAULTS = {
    "--server-hostname": "localhost",
    "--http-server-bindport": "8000",
    "--enable-https": "false",
    "--https-cert-file": "",
    "--https-key-file": "",
    "--http-read-timeout": "5s",
    "--http-write-timeout": "30s",
    "--metrics-server-bindport": "8080",
    "--enable-metrics-https": "false",
    "--label-metrics-inclusion-duration": "168h0m0s",
    "--health-check-server-bindport": "8083",
    "--enable-health-check-https": "false",
    "--heartbeat-interval": "15",
    "--enable-grpc-server": "true",
    "--grpc-server-bindport": "8090",
    "--grpc-broker-bindport": "8091",
    "--grpc-max-receive-message-size": "4194304",
    "--grpc-max-send-message-size": "2147483647",
    "--grpc-connection-timeout": "2m0s",
    "--grpc-max-connection-age": "2562047h47m16.854775s",
    "--grpc-client-min-ping-interval": "5s",
    "--grpc-server-ping-interval": "30s",
    "--grpc-server-ping-timeout": "10s",
    "--permit-ping-without-stream": "false",
    "--grpc-write-buffer-size": "32768",
    "--grpc-read-buffer-size": "32768",
    "--disable-grpc-tls": "false",
    "--grpc-tls-cert-file": "",
    "--grpc-tls-key-file": "",
    "--grpc-client-ca-file": "",
    "--grpc-broker-tls-cert-file": "",
    "--grpc-broker-tls-key-file": "",
    "--grpc-broker-client-ca-file": "",
    "--grpc-authn-type": "mock",
    "--grpc-authorizer-config": "",
    "--heartbeat-check-interval": "10s",
    "--heartbeat-disable": "false",
    "--subscription-type": "shared",
    "--consistent-hash-partition-count": "7",
    "--consistent-hash-replication-factor": "20",
    "--consistent-hash-load": "1.25",
    "--undelivered-resource-threshold": "600",
    "--stale-delete-event-threshold": "3600",
    "--db-host-file": "secrets/db.host",
    "--db-port-file": "secrets/db.port",
    "--db-user-file": "secrets/db.user",
    "--db-password-file": "secrets/db.password",
    "--db-name-file": "secrets/db.name",
    "--db-rootcert": "secrets/db.rootcert",
    "--db-sslmode": "disable",
    "--db-max-open-connections": "50",
    "--enable-db-debug": "false",
    "--db-auth-method": "password",
    "--db-token-request-scope": "https://ossrdbms-aad.database.windows.net/.default",
    "--message-broker-config-file": "secrets/mqtt.config",
    "--source-id": "maestro",
    "--client-id": "maestro",
    "--disable-message-broker": "false",
    "--enable-message-broker-mock": "false",
}


def test_every_flag_of_the_go_server_exists_with_its_default() -> None:
    flag_defaults = {name: flag.shown_default() for name, flag in FLAGS.items()}
    assert {name: flag_defaults.get(name) for name in REFERENCE_DEFAULTS} == REFERENCE_DEFAULTS


def test_no_two_fields_share_a_flag() -> None:
    declared = [
        item.metadata["flag"]
        for group in dataclasses.fields(ServerSettings)
        for item in dataclasses.fields(group.default_factory)  # type: ignore[arg-type]  # every group has one
        if "flag" in item.metadata
    ]
    assert sorted(declared) == sorted(FLAGS)


def test_every_field_is_documented() -> None:
    groups = {flag.group_kind for flag in FLAGS.values()}
    silent = {
        f"{group.__name__}.{item.name}"
        for group in groups
        for item in dataclasses.fields(group)
        if not help_texts(group).get(item.name)
    }
    assert silent == set()


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_explicit_default_changes_nothing(name: str) -> None:
    flag = FLAGS[name]
    assert flag.read(flag.shown_default()) == flag.default


def test_texts_become_values() -> None:
    settings = load(
        {
            "--http-server-bindport": "0",
            "--grpc-connection-timeout": "1m30s",
            "--grpc-authn-type": "mock",
            "--enable-grpc-server": "F",
            "--jwt-algorithms": "RS256, ES256",
            "--consistent-hash-load": "1.5",
            "--grpc-authorizer-config": "",
        },
        HOME,
    )
    assert settings.http.port == 0
    assert settings.grpc.connection_timeout == timedelta(seconds=90)
    assert settings.grpc.enabled is False
    assert settings.rest_auth.jwt_algorithms == ("RS256", "ES256")
    assert settings.delivery.load == 1.5
    assert settings.grpc.authorizer_config is None


@pytest.mark.parametrize(
    ("environ", "verbosity"),
    [
        pytest.param({}, 2, id="unset"),
        pytest.param({"MAESTRO_ENV": "development"}, 10, id="development"),
        pytest.param({"MAESTRO_ENV": "testing"}, 0, id="testing"),
        pytest.param({"MAESTRO_ENV": "production"}, 1, id="production"),
    ],
)
def test_environment_presets_verbosity_and_the_flag_wins(environ: Mapping[str, str], verbosity: int) -> None:
    assert load({}, HOME | dict(environ)).log.verbosity == verbosity
    assert load({"-v": "7"}, HOME | dict(environ)).log.verbosity == 7


TLS = {"--grpc-tls-cert-file": "c", "--grpc-tls-key-file": "k"}
BROKER_TLS = {"--grpc-broker-tls-cert-file": "c", "--grpc-broker-tls-key-file": "k"}


@pytest.mark.parametrize(
    ("given_flags", "complaint"),
    [
        pytest.param({"--nope": "1"}, "--nope is not a flag", id="unknown"),
        pytest.param({"--workers": "two"}, "--workers=two: write a whole number", id="text-for-number"),
        pytest.param({"--workers": "١"}, "--workers=١: write a whole number", id="digit-of-another-script"),
        pytest.param({"--enable-https": "yes"}, "--enable-https=yes: write true or false", id="yes-is-no-bool"),
        pytest.param({"--sweep-interval": "2"}, "--sweep-interval=2: write a duration", id="duration-without-unit"),
        pytest.param({"--log-format": "xml"}, "--log-format=xml: use one of klog, json", id="unknown-choice"),
        pytest.param({"--http-server-bindport": "65536"}, "use a port from 1 to 65535", id="port-too-high"),
        pytest.param({"--http-server-bindport": "-1"}, "use a port from 1 to 65535", id="port-negative"),
        pytest.param({"--http-server-bindport": "8090"}, "is also --http-server-bindport", id="port-twice"),
        pytest.param({"--grpc-broker-bindport": "0", "--workers": "2"}, "each worker another port", id="shared-port-0"),
        pytest.param({"--https-cert-file": "c"}, "--https-cert-file needs --https-key-file", id="cert-without-key"),
        pytest.param({"--grpc-tls-key-file": "k"}, "needs --grpc-tls-cert-file", id="key-without-cert"),
        pytest.param({"--enable-https": "true"}, "--enable-https needs a certificate", id="https-without-cert"),
        pytest.param({"--enable-metrics-https": "true"}, "--enable-metrics-https needs", id="metrics-https"),
        pytest.param({"--enable-health-check-https": "true"}, "--enable-health-check-https needs", id="health-https"),
        pytest.param({"--grpc-authn-type": "token"}, "--grpc-authn-type=token needs TLS", id="token-in-plain-text"),
        pytest.param({"--grpc-authn-type": "mtls"}, "--grpc-authn-type=mtls needs TLS", id="mtls-in-plain-text"),
        pytest.param({"--grpc-authn-type": "mtls", **TLS}, "needs --grpc-client-ca-file", id="mtls-without-ca"),
        pytest.param({"--grpc-broker-client-ca-file": "ca"}, "needs TLS", id="broker-ca-without-tls"),
        pytest.param(
            {"--grpc-broker-agent-identity": "exact", **BROKER_TLS},
            "exact needs --grpc-broker-client-ca-file",
            id="exact-agents-without-certificates",
        ),
        pytest.param(
            {"--grpc-broker-agent-identity": "strict"}, "use one of exact, suffix, warn, any", id="former-value"
        ),
        pytest.param({"--grpc-stream-recheck-interval": "-1s"}, "is negative", id="recheck-negative"),
        pytest.param({"--rest-authn-type": "jwt"}, "--jwks-file or --jwks-url", id="jwt-without-keys"),
        pytest.param({**LOGIN, "--enable-console": "false"}, "give --enable-console", id="login-without-console"),
        pytest.param({**LOGIN, "--rest-authn-type": "none"}, "needs --rest-authn-type=jwt", id="login-without-jwt"),
        pytest.param({**LOGIN, "--console-oidc-client-id": ""}, "also needs --console-oidc-client-id", id="login-half"),
        pytest.param(
            {**LOGIN, "--console-oidc-issuer-url": "http://login.example"}, "sent in the clear", id="login-without-tls"
        ),
        pytest.param({**LOGIN, "--console-oidc-issuer-url": "https://["}, "write an address", id="login-no-address"),
        pytest.param(
            {**LOGIN, "--console-oidc-redirect-url": "https://m.example/console"},
            "has to end with",
            id="login-redirect",
        ),
        pytest.param({**LOGIN, "--console-oidc-scopes": "profile"}, "openid is missing", id="login-without-openid"),
        pytest.param({**LOGIN, "--jwt-issuer": "https://other"}, "give both the same text", id="login-other-issuer"),
        pytest.param(
            {**LOGIN, "--jwt-audience": "api", "--console-oidc-token": "id"}, "rejects it", id="login-other-audience"
        ),
        pytest.param(
            {"--rest-authn-type": "jwt", "--jwks-file": "f", "--jwks-url": "https://x"}, "not both", id="jwt-two-keys"
        ),
        pytest.param({"--jwks-url": "ftp://x"}, "begins with https://", id="jwks-url-scheme"),
        pytest.param({"--jwt-algorithms": "HS256"}, "--jwt-algorithms=HS256: use some of", id="jwt-shared-secret"),
        pytest.param({"--jwt-algorithms": "none"}, "--jwt-algorithms=none: use some of", id="jwt-unsigned"),
        pytest.param({"--heartbeat-interval": "0"}, "--heartbeat-interval=0: use 1 or more", id="heartbeat"),
        pytest.param({"--undelivered-resource-threshold": "-1"}, "use 0 or more", id="undelivered-negative"),
        pytest.param({"--stale-delete-event-threshold": "-1"}, "use 0 or more", id="stale-negative"),
        pytest.param(
            {"--delete-event-republish-interval": "-1"},
            "must be between 0 and 9223372036 seconds",
            id="republish-negative",
        ),
        pytest.param(
            {"--delete-event-republish-interval": "9223372037", "--delete-event-republish-max-interval": "9223372037"},
            "--delete-event-republish-interval=9223372037 must be between 0 and 9223372036 seconds",
            id="republish-longer-than-a-duration",
        ),
        pytest.param(
            {"--delete-event-republish-max-interval": "59"},
            "must be positive, fit a duration and be at least the initial interval; use 60",
            id="republish-max-below-interval",
        ),
        pytest.param(
            {"--delete-event-republish-interval": "0", "--delete-event-republish-max-interval": "0"},
            "--delete-event-republish-max-interval=0 must be positive",
            id="republish-max-zero",
        ),
        pytest.param(
            {"--delete-event-republish-batch-size": "0"}, "must be between 1 and 1000", id="republish-batch-zero"
        ),
        pytest.param(
            {"--delete-event-republish-batch-size": "1001"}, "must be between 1 and 1000", id="republish-batch-large"
        ),
        pytest.param({"--workers": "999999999"}, "--workers=999999999: use 1024 or less", id="too-many-workers"),
        pytest.param({"--consistent-hash-load": "nan"}, "use 1 or more", id="not-a-number"),
        pytest.param({"--sweep-interval": "0s"}, "--sweep-interval must be longer", id="rescan-interval-zero"),
        pytest.param({"--event-retention": "-1s"}, "--event-retention is negative", id="retention-negative"),
        pytest.param({"--client-id": ""}, "--client-id is empty", id="empty-client-id"),
        pytest.param({"--db-dsn": "mysql://u@h/d"}, "--db-dsn does not begin with", id="dsn"),
    ],
)
def test_rejection_names_the_flag_and_the_remedy(given_flags: Mapping[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        load(given_flags, HOME)


def test_unknown_environment_is_rejected() -> None:
    with pytest.raises(SettingsError, match="MAESTRO_ENV=prod is not known; use one of development"):
        load({}, {"MAESTRO_ENV": "prod"})


def test_port_of_a_disabled_listener_is_free() -> None:
    load({"--http-server-bindport": "8090", "--enable-grpc-server": "false"}, HOME)
    load({"--http-server-bindport": "8091", "--disable-message-broker": "true"}, HOME)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param(HOME, "/home/me/.local/share/maestropy", id="home"),
        pytest.param({"XDG_DATA_HOME": "/data", **HOME}, "/data/maestropy", id="data-home"),
        pytest.param({"XDG_DATA_HOME": "data", **HOME}, "/home/me/.local/share/maestropy", id="relative-is-ignored"),
    ],
)
def test_default_data_dir(environ: Mapping[str, str], expected: str) -> None:
    assert load({}, environ).database.data_dir == Path(expected)
    assert load({"--data-dir": "/x"}, environ).database.data_dir == Path("/x")


def test_every_worker_is_an_instance() -> None:
    ids = [
        load({"--client-id": "m", "--workers": "3", "--worker-index": str(index)}, HOME).instance.instance_id
        for index in range(3)
    ]
    assert ids == ["m", "m-w1", "m-w2"]


# Which broker

MQTT = "brokerHost: localhost:1883\ntopics: {}\n"


@pytest.mark.parametrize(("content", "kind"), [(MQTT, "mqtt"), ('{"projectID": "my-project"}', "pubsub")])
def test_file_of_a_broker_needs_its_type(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "broker.yaml"
    path.write_text(content)
    with pytest.raises(SettingsError, match=rf"broker.yaml is for {kind} .*; add --message-broker-type={kind}, or"):
        check_broker_file(load({"--message-broker-config-file": str(path)}, HOME))
    check_broker_file(load({"--message-broker-config-file": str(path), "--message-broker-type": "grpc"}, HOME))
    check_broker_file(load({"--message-broker-config-file": str(path), "--disable-message-broker": "true"}, HOME))


@pytest.mark.parametrize("content", ["url: localhost:8091\n", "- brokerHost\n", "{", None])
def test_file_of_no_message_broker_needs_no_type(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "broker.yaml"
    if content is not None:
        path.write_text(content)
    check_broker_file(load({"--message-broker-config-file": str(path)}, HOME))


# Which database


def secrets(directory: Path, **content: str) -> dict[str, str]:
    texts = {"host": "db\n", "port": "5433", "user": "u\n", "password": " hunter2 \n", "name": "d\n", **content}
    for name, text in texts.items():
        (directory / name).write_text(text)
    return {f"--db-{name}-file": str(directory / name) for name in texts}


def test_files_give_the_address(tmp_path: Path) -> None:
    settings, dsn = locate(load(secrets(tmp_path), HOME))
    assert dsn == Dsn(host="db", port=5433, user="u", password=" hunter2 ", database="d", sslmode="disable")
    assert settings.database.auto_migrate is False
    assert "hunter2" not in repr(dsn)


async def test_rotated_password_file_is_read_for_each_new_connection(tmp_path: Path) -> None:
    _, dsn = locate(load(secrets(tmp_path), HOME))
    assert dsn is not None
    password = dsn.connect_kwargs()["password"]
    assert callable(password)
    (tmp_path / "password").write_text("rotated\n")
    assert await password() == "rotated"
    (tmp_path / "password").unlink()
    assert await password() == " hunter2 "


ENTRA = {"--db-auth-method": "az-entra"}


def test_entra_needs_no_password_file(tmp_path: Path) -> None:
    flags = {**secrets(tmp_path), **ENTRA, "--db-sslmode": "require", "--db-rootcert": ""}
    (tmp_path / "password").unlink()
    dsn = locate(load(flags, HOME))[1]
    assert dsn == Dsn(host="db", port=5433, user="u", password=None, database="d", sslmode="require")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        pytest.param({}, "needs the address of Azure's PostgreSQL", id="embedded"),
        pytest.param({"--db-dsn": "postgresql://u@h/d"}, "would send its token to h without TLS", id="no-tls"),
        pytest.param(
            {"--db-dsn": "postgresql://u@h/d?sslmode=require", "--db-listen-dsn": "postgresql://u@i/d"},
            "would send its token to i without TLS",
            id="no-tls-of-the-listener",
        ),
        pytest.param(
            {"--db-dsn": "postgresql://u@h/d?sslmode=require", "--db-read-dsn": "postgresql://u@r/d"},
            "would send its token to r without TLS",
            id="no-tls-of-the-replica",
        ),
    ],
)
def test_entra_needs_an_address_with_tls(
    flags: Mapping[str, str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        locate(load({**ENTRA, **flags}, HOME))


async def test_listening_address_takes_the_tokens_of_the_same_user() -> None:
    async def token() -> str:
        return "t"

    dsn = Dsn(host="h", user="u", database="d", password_source=token)
    settings = load({"--db-listen-dsn": "postgresql://u@i/d"}, HOME)
    assert listening_address(settings, dsn).connect_kwargs()["password"] is token


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param({"host": "a,b\n"}, (Host("a", 5433), Host("b", 5433)), id="one-port"),
        pytest.param({"host": "a,b", "port": "1,2\n"}, (Host("a", 1), Host("b", 2)), id="a-port-for-each"),
    ],
)
def test_files_may_name_several_hosts(tmp_path: Path, content: Mapping[str, str], expected: tuple[Host, ...]) -> None:
    dsn = locate(load(secrets(tmp_path, **content), HOME))[1]
    assert dsn is not None
    assert dsn.hosts == expected
    assert dsn.needs_writable_host


@pytest.mark.parametrize(
    ("address", "password"),
    [
        pytest.param("postgresql://u@primary/d", " hunter2 ", id="same-user"),
        pytest.param("postgresql://u:other@primary/d", "other", id="own-password"),
        pytest.param("postgresql://v@primary/d", None, id="other-user"),
    ],
)
def test_listening_address_takes_the_password_of_the_same_user(
    tmp_path: Path, address: str, password: str | None
) -> None:
    for flags, environ in (({"--db-listen-dsn": address}, {}), ({}, {"MAESTRO_DB_LISTEN_DSN": address})):
        settings, dsn = locate(load({**secrets(tmp_path), **flags}, {**HOME, **environ}))
        assert dsn is not None
        assert listening_address(settings, dsn) == dataclasses.replace(Dsn.parse(address), password=password)


def test_all_connections_have_one_address_by_default(tmp_path: Path) -> None:
    settings, dsn = locate(load(secrets(tmp_path), HOME))
    assert dsn is not None
    assert listening_address(settings, dsn) is dsn


def test_listening_address_needs_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="--db-listen-dsn needs --db-dsn"):
        locate(load({"--db-listen-dsn": "postgresql://u@primary/d"}, HOME))


def test_reading_address_takes_the_password_of_the_same_user(tmp_path: Path) -> None:
    address = "postgresql://u@replica/d"
    for flags, environ in (({"--db-read-dsn": address}, {}), ({}, {"MAESTRO_DB_READ_DSN": address})):
        settings, dsn = locate(load({**secrets(tmp_path), **flags}, {**HOME, **environ}))
        assert dsn is not None
        assert reading_address(settings, dsn) == dataclasses.replace(Dsn.parse(address), password=" hunter2 ")
    settings, dsn = locate(load(secrets(tmp_path), HOME))
    assert dsn is not None
    assert reading_address(settings, dsn) is None


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        pytest.param({"--db-read-dsn": "postgresql://u@r/d"}, "--db-read-dsn needs --db-dsn", id="embedded"),
        pytest.param(
            {"--db-dsn": "postgresql://u@h/d", "--db-read-dsn": "postgresql://v@h:5432/d"},
            "--db-read-dsn is the address of --db-dsn",
            id="primary",
        ),
        pytest.param(
            {"--db-dsn": "postgresql://u@h/d", "--db-read-dsn": "postgresql://u@r/d?target_session_attrs=any"},
            "--db-read-dsn has target_session_attrs; leave it out",
            id="session-target",
        ),
        pytest.param({"--db-read-max-lag": "50ms"}, "--db-read-max-lag is shorter than 100ms", id="lag"),
        pytest.param({"--db-read-wait": "11s"}, "--db-read-wait must be between 0s and 10s", id="wait"),
        pytest.param({"--db-read-max-open-connections": "1"}, "use 2 or more", id="connections"),
    ],
)
def test_bad_setting_of_the_replica_is_named(
    flags: Mapping[str, str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        locate(load(flags, HOME))


def test_default_files_are_used_if_they_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(load({}, HOME))[1] is None
    (tmp_path / "secrets").mkdir()
    secrets(tmp_path / "secrets")
    for name in ("host", "port", "user", "password", "name"):
        (tmp_path / "secrets" / name).rename(tmp_path / "secrets" / f"db.{name}")
    dsn = locate(load({}, HOME))[1]
    assert dsn is not None
    assert dsn.host == "db"


def test_dsn_wins_over_files_and_the_flag_over_the_environment(tmp_path: Path) -> None:
    environ = {**HOME, "MAESTRO_DB_DSN": "postgresql://u@environment/d"}
    from_environment = locate(load(secrets(tmp_path), environ))[1]
    from_flag = locate(load({**secrets(tmp_path), "--db-dsn": "postgresql://u@flag/d"}, environ))[1]
    assert from_environment is not None
    assert from_flag is not None
    assert (from_environment.host, from_flag.host) == ("environment", "flag")


def test_only_the_embedded_database_is_migrated_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings, dsn = locate(load({}, HOME))
    assert (dsn, settings.database.auto_migrate) == (None, True)
    assert locate(load({"--auto-migrate": "false"}, HOME))[0].database.auto_migrate is False


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param({}, id="default-hostname"),
        pytest.param({"--server-hostname": "127.0.0.1"}, id="ipv4-loopback"),
        pytest.param({"--server-hostname": "::1"}, id="ipv6-loopback"),
        pytest.param({"--server-hostname": "[::1]"}, id="ipv6-loopback-in-brackets"),
        pytest.param({"--server-hostname": "", "--embedded-database": "true", **MESH}, id="asked-for"),
        pytest.param({"--server-hostname": "0.0.0.0", "--data-dir": "/x", **MESH}, id="data-directory-given"),
    ],
)
def test_embedded_database_is_used_when_asked_for_or_on_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: Mapping[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(load(flags, HOME))[1] is None


@pytest.mark.parametrize(
    ("given", "hostname"), [("[::]", "::"), ("[::1]", "::1"), ("::1", "::1"), ("[name]", "[name]"), ("", "")]
)
def test_brackets_of_an_ipv6_hostname_are_left_out(given: str, hostname: str) -> None:
    assert load({"--server-hostname": given, **MESH}, HOME).http.hostname == hostname


@pytest.mark.parametrize("hostname", ["", "0.0.0.0", "::", "[::]", "10.0.0.7", "maestro.example.com"])
def test_server_on_the_network_without_a_database_setting_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostname: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for environ in (HOME, {**HOME, "MAESTRO_ENV": "production"}, {**HOME, "MAESTRO_DB_DSN": ""}):
        with pytest.raises(SettingsError, match=r"--db-dsn.*--embedded-database or --data-dir"):
            locate(load({"--server-hostname": hostname, **MESH}, environ))


def test_embedded_database_contradicts_an_address() -> None:
    flags = {"--embedded-database": "true", "--db-dsn": "postgresql://u@db/d"}
    with pytest.raises(SettingsError, match="contradicts"):
        locate(load(flags, HOME))


@pytest.mark.parametrize(
    ("content", "flags", "complaint"),
    [
        pytest.param({"port": "fifty"}, {}, "holds no port", id="port-not-a-number"),
        pytest.param({"port": "1,"}, {}, "holds no port", id="missing-port-of-a-host"),
        pytest.param({"host": "a,,b"}, {}, "has an empty host", id="empty-host"),
        pytest.param({"port": "1,2"}, {}, "names 1 hosts and 2 ports", id="more-ports-than-hosts"),
        pytest.param({}, {"--db-user-file": "/nowhere"}, "--db-user-file=/nowhere cannot be read", id="missing-file"),
        pytest.param({}, {"--db-sslmode": "verify-full"}, "--db-rootcert=secrets/db.rootcert", id="no-ca"),
        pytest.param(
            {}, {"--db-sslmode": "require", "--db-rootcert": "/no.pem"}, "--db-rootcert=/no.pem", id="missing-ca-file"
        ),
    ],
)
def test_unusable_files(tmp_path: Path, content: Mapping[str, str], flags: Mapping[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        locate(load({**secrets(tmp_path, **content), **flags}, HOME))


def test_login_of_the_console_is_read() -> None:
    login = load(LOGIN, HOME).console_login
    assert (login.client_id, login.scopes, login.roles_from) == ("console", ("openid",), "access")
    loopback = {"--console-oidc-redirect-url": "http://127.0.0.1:8000/console/login/callback"}
    assert load({**LOGIN, **loopback}, HOME).console_login.redirect_url.startswith("http:")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "cannot be read", id="absent"),
        pytest.param(b"short", "16 characters", id="short"),
        pytest.param(b"two secrets in one file", "16 characters", id="spaces"),
        pytest.param("geheimnis-für-maestro".encode(), "ASCII", id="not-ascii"),
    ],
)
def test_bad_client_secret_is_named_without_quoting_it(content: bytes | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as failure:
        read_secret(file)
    assert words in str(failure.value)
    assert content is None or content.decode() not in str(failure.value)


def test_client_secret_has_no_line_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123456789abcdef\n")
    assert read_secret(tmp_path / "secret") == "0123456789abcdef"
