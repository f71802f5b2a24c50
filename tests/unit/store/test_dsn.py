from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.store.dsn import SESSION_TARGETS, SSL_MODES, Dsn, DsnError, Host

PLAIN = Dsn(host="db", user="maestro", database="maestro")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("postgresql://maestro@db/maestro", PLAIN, id="url"),
        pytest.param("postgres://maestro@db:5432", PLAIN, id="database-is-named-like-the-user"),
        pytest.param("host=db user=maestro dbname=maestro", PLAIN, id="key-value-pairs"),
        pytest.param(
            "postgresql://u:p%40%3A%2F@db:5433/d?sslmode=verify-full&sslrootcert=/ca.pem",
            Dsn(
                host="db",
                port=5433,
                user="u",
                password="p@:/",
                database="d",
                sslmode="verify-full",
                rootcert=Path("/ca.pem"),
            ),
            id="password-with-every-separator",
        ),
        pytest.param("postgresql://u@/d?host=/run/pg", Dsn(host="/run/pg", user="u", database="d"), id="unix-socket"),
        pytest.param(
            "host=db user=u password='a b' dbname=d",
            Dsn(host="db", user="u", password="a b", database="d"),
            id="quoted-value",
        ),
        pytest.param("postgresql://u@[::1]:6000/d", Dsn(host="::1", port=6000, user="u", database="d"), id="ipv6"),
        pytest.param(
            "postgresql://u:p@a:5433,b,[::1]:6000/d?target_session_attrs=primary",
            Dsn(
                host="a",
                port=5433,
                other_hosts=(Host("b"), Host("::1", 6000)),
                user="u",
                password="p",
                database="d",
                target_session_attrs="primary",
            ),
            id="several-hosts",
        ),
        pytest.param(
            "host=a,b port=5433 user=u dbname=d",
            Dsn(host="a", port=5433, other_hosts=(Host("b", 5433),), user="u", database="d"),
            id="one-port-for-all-hosts",
        ),
        pytest.param(
            "postgresql://u@/d?host=/run/a,b&port=1,2",
            Dsn(host="/run/a", port=1, other_hosts=(Host("b", 2),), user="u", database="d"),
            id="hosts-as-parameter",
        ),
    ],
)
def test_parse(text: str, expected: Dsn) -> None:
    assert Dsn.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("mysql://u:hunter2@db/d", "does not begin with postgresql://", id="other-database"),
        pytest.param("postgresql://db/d", "names no user", id="no-user"),
        pytest.param("postgresql://u:hunter2@/d", "names no host", id="no-host"),
        pytest.param("postgresql://u:hunter2@db:x/d", "is not a URL", id="port-not-a-number"),
        pytest.param("host=db user=u port=0", "has a port", id="port-zero"),
        pytest.param("postgresql://u:hunter2@a,/d", "has an empty host", id="empty-host"),
        pytest.param("host=a,b,c port=1,2 user=u", "names 3 hosts and 2 ports", id="other-number-of-ports"),
        pytest.param(f"host={','.join('a' * 17)} user=u", "names 17 hosts; 16 are possible", id="too-many-hosts"),
        pytest.param("postgresql://u:hunter2@a,b:x/d", "is not a URL", id="port-of-second-host"),
        pytest.param(
            "postgresql://u:hunter2@a,b/d?target_session_attrs=standby",
            "use one of any, primary, read-write",
            id="standby-cannot-be-written-to",
        ),
        pytest.param("postgresql://u:hunter2@db/d?fetch=1", "has the parameter fetch", id="unknown-parameter"),
        pytest.param("postgresql://u:hunter2@db/d?sslmode=maybe", "has an sslmode", id="unknown-sslmode"),
        pytest.param("hunter2", "is neither a URL nor key=value pairs", id="neither-url-nor-pairs"),
        pytest.param("host='db user=u password=hunter2", "quotation mark", id="open-quote"),
    ],
)
def test_rejection_never_quotes_the_connection_string(text: str, reason: str) -> None:
    with pytest.raises(DsnError, match=reason) as caught:
        Dsn.parse(text)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__ or "hunter2" not in str(caught.value.__context__)


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1)


@given(user=NAMES, database=NAMES, port=st.integers(1, 65535), sslmode=st.sampled_from(SSL_MODES))
@pytest.mark.parametrize("host", ["db.example", "127.0.0.1", "::1", "/run/my socket?&"])
def test_text_parses_back_and_has_no_password(host: str, user: str, database: str, port: int, sslmode: str) -> None:
    without = Dsn(host=host, port=port, user=user, database=database, sslmode=sslmode)
    secret = Dsn(host=host, port=port, user=user, database=database, sslmode=sslmode, password="§hunter2§")
    assert Dsn.parse(str(secret)) == without
    assert "hunter2" not in str(secret) + repr(secret)


@pytest.mark.parametrize("hosts", [("a", "b"), ("::1", "127.0.0.1"), ("/run/a b", "c")])
@pytest.mark.parametrize("target", [None, *SESSION_TARGETS])
def test_text_of_several_hosts_parses_back(hosts: tuple[str, str], target: str | None) -> None:
    dsn = Dsn(host=hosts[0], other_hosts=(Host(hosts[1], 6000),), user="u", database="d", target_session_attrs=target)
    assert Dsn.parse(str(dsn)) == dsn


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://u@a/d", False),
        ("postgresql://u@a/d?target_session_attrs=read-write", True),
        ("postgresql://u@a,b/d", True),
        ("postgresql://u@a,b/d?target_session_attrs=any", False),
        ("postgresql://u@a,b/d?target_session_attrs=primary", False),
    ],
)
def test_one_of_several_hosts_has_to_take_writes(text: str, *, expected: bool) -> None:
    assert Dsn.parse(text).needs_writable_host is expected


def test_driver_gets_the_password() -> None:
    kwargs = Dsn.parse("postgresql://u:hunter2@db/d?sslmode=require").connect_kwargs()
    assert kwargs == {
        "host": "db",
        "port": 5432,
        "user": "u",
        "password": "hunter2",
        "database": "d",
        "ssl": "require",
    }


def test_root_certificate_is_verified_for_require(tmp_path: Path) -> None:
    dsn = Dsn(host="db", user="u", database="d", sslmode="require", rootcert=tmp_path / "missing.pem")
    with pytest.raises(FileNotFoundError):
        dsn.connect_kwargs()
