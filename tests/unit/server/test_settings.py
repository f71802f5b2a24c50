import dataclasses
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from maestropy.flags.explanation import explanations
from maestropy.server.settings import ServerSettings, SettingsError, load, locate
from maestropy.server.settings.load import FLAGS
from maestropy.store.dsn import Dsn

HOME = {"HOME": "/home/me"}

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
    "--grpc-max-concurrent-streams": "4294967295",
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


def test_every_flag_of_the_go_server_is_there_with_its_default() -> None:
    ours = {name: flag.shown_default() for name, flag in FLAGS.items()}
    assert {name: ours.get(name) for name in REFERENCE_DEFAULTS} == REFERENCE_DEFAULTS


def test_no_two_fields_share_a_flag() -> None:
    declared = [
        item.metadata["flag"]
        for group in dataclasses.fields(ServerSettings)
        for item in dataclasses.fields(group.default_factory)  # type: ignore[arg-type]  # every group has one
        if "flag" in item.metadata
    ]
    assert sorted(declared) == sorted(FLAGS)


def test_every_field_is_explained() -> None:
    groups = {flag.group_kind for flag in FLAGS.values()}
    silent = {
        f"{group.__name__}.{item.name}"
        for group in groups
        for item in dataclasses.fields(group)
        if not explanations(group).get(item.name)
    }
    assert silent == set()


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_a_default_written_out_changes_nothing(name: str) -> None:
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
        pytest.param({}, 2, id="unset-traces-requests-but-shows-no-payload"),
        pytest.param({"MAESTRO_ENV": "development"}, 10, id="development"),
        pytest.param({"MAESTRO_ENV": "testing"}, 0, id="testing"),
        pytest.param({"MAESTRO_ENV": "production"}, 1, id="production"),
    ],
)
def test_the_environment_presets_verbosity_and_the_flag_wins(environ: Mapping[str, str], verbosity: int) -> None:
    assert load({}, HOME | dict(environ)).log.verbosity == verbosity
    assert load({"-v": "7"}, HOME | dict(environ)).log.verbosity == 7


TLS = {"--grpc-tls-cert-file": "c", "--grpc-tls-key-file": "k"}
BROKER_TLS = {"--grpc-broker-tls-cert-file": "c", "--grpc-broker-tls-key-file": "k"}


@pytest.mark.parametrize(
    ("given_flags", "complaint"),
    [
        pytest.param({"--nope": "1"}, "--nope is not a flag", id="unknown"),
        pytest.param({"--workers": "two"}, "--workers=two: write a whole number", id="word-for-number"),
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
            {"--grpc-broker-agent-identity": "strict", **BROKER_TLS},
            "strict needs --grpc-broker-client-ca-file",
            id="strict-agents-without-certificates",
        ),
        pytest.param({"--rest-authn-type": "jwt"}, "--jwks-file or --jwks-url", id="jwt-without-keys"),
        pytest.param(
            {"--rest-authn-type": "jwt", "--jwks-file": "f", "--jwks-url": "https://x"}, "not both", id="jwt-two-keys"
        ),
        pytest.param({"--jwks-url": "ftp://x"}, "begins with https://", id="jwks-url-scheme"),
        pytest.param({"--jwt-algorithms": "HS256"}, "--jwt-algorithms=HS256: use some of", id="jwt-shared-secret"),
        pytest.param({"--jwt-algorithms": "none"}, "--jwt-algorithms=none: use some of", id="jwt-unsigned"),
        pytest.param({"--heartbeat-interval": "2"}, "--heartbeat-interval=2: use 3 or more", id="heartbeat"),
        pytest.param({"--undelivered-resource-threshold": "-1"}, "use 0 or more", id="undelivered-negative"),
        pytest.param({"--stale-delete-event-threshold": "-1"}, "use 0 or more", id="stale-negative"),
        pytest.param({"--consistent-hash-load": "nan"}, "use 1 or more", id="not-a-number"),
        pytest.param({"--sweep-interval": "0s"}, "--sweep-interval must be longer", id="sweep-without-pause"),
        pytest.param({"--event-retention": "-1s"}, "--event-retention is negative", id="retention-negative"),
        pytest.param({"--client-id": ""}, "--client-id is empty", id="nameless-instance"),
        pytest.param({"--message-broker-type": "pubsub"}, "not in this version yet; use", id="pubsub"),
        pytest.param({"--db-auth-method": "az-entra"}, "not in this version yet; use", id="az-entra"),
        pytest.param({"--db-dsn": "mysql://u@h/d"}, "--db-dsn does not begin with", id="dsn"),
    ],
)
def test_refuses_with_the_flag_and_the_remedy(given_flags: Mapping[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        load(given_flags, HOME)


def test_an_unknown_environment_is_refused() -> None:
    with pytest.raises(SettingsError, match="MAESTRO_ENV=prod is not known; use one of development"):
        load({}, {"MAESTRO_ENV": "prod"})


def test_a_disabled_listener_leaves_its_port_to_others() -> None:
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
def test_data_belongs_to_the_data_home(environ: Mapping[str, str], expected: str) -> None:
    assert load({}, environ).database.data_dir == Path(expected)
    assert load({"--data-dir": "/x"}, environ).database.data_dir == Path("/x")


def test_workers_are_instances_of_their_own() -> None:
    ids = [
        load({"--client-id": "m", "--workers": "3", "--worker-index": str(index)}, HOME).instance.instance_id
        for index in range(3)
    ]
    assert ids == ["m", "m-w1", "m-w2"]


# Which database


def secrets(directory: Path, **content: str) -> dict[str, str]:
    texts = {"host": "db\n", "port": "5433", "user": "u\n", "password": " hunter2 \n", "name": "d\n", **content}
    for name, text in texts.items():
        (directory / name).write_text(text)
    return {f"--db-{name}-file": str(directory / name) for name in texts}


def test_the_files_make_an_address(tmp_path: Path) -> None:
    settings, dsn = locate(load(secrets(tmp_path), HOME))
    assert dsn == Dsn(host="db", port=5433, user="u", password=" hunter2 ", database="d", sslmode="disable")
    assert settings.database.auto_migrate is False
    assert "hunter2" not in repr(dsn)


def test_the_files_in_their_usual_place_count_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(load({}, HOME))[1] is None
    (tmp_path / "secrets").mkdir()
    secrets(tmp_path / "secrets")
    for name in ("host", "port", "user", "password", "name"):
        (tmp_path / "secrets" / name).rename(tmp_path / "secrets" / f"db.{name}")
    found = locate(load({}, HOME))[1]
    assert found is not None
    assert found.host == "db"


def test_a_dsn_wins_over_files_and_the_flag_over_the_environment(tmp_path: Path) -> None:
    environ = {**HOME, "MAESTRO_DB_DSN": "postgresql://u@environment/d"}
    from_environment = locate(load(secrets(tmp_path), environ))[1]
    from_flag = locate(load({**secrets(tmp_path), "--db-dsn": "postgresql://u@flag/d"}, environ))[1]
    assert from_environment is not None
    assert from_flag is not None
    assert (from_environment.host, from_flag.host) == ("environment", "flag")


def test_the_embedded_database_migrates_itself_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings, dsn = locate(load({}, HOME))
    assert (dsn, settings.database.auto_migrate) == (None, True)
    assert locate(load({"--auto-migrate": "false"}, HOME))[0].database.auto_migrate is False


@pytest.mark.parametrize(
    ("content", "flags", "complaint"),
    [
        pytest.param({"port": "fifty"}, {}, "holds no port", id="port-is-a-word"),
        pytest.param({}, {"--db-user-file": "/nowhere"}, "--db-user-file=/nowhere cannot be read", id="missing-file"),
        pytest.param({}, {"--db-sslmode": "verify-full"}, "--db-rootcert=secrets/db.rootcert", id="no-authority"),
        pytest.param(
            {}, {"--db-sslmode": "require", "--db-rootcert": "/no.pem"}, "--db-rootcert=/no.pem", id="lost-authority"
        ),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, content: Mapping[str, str], flags: Mapping[str, str], complaint: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        locate(load({**secrets(tmp_path, **content), **flags}, HOME))
