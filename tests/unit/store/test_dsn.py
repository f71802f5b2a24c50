from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.store.dsn import SSL_MODES, Dsn, DsnError

PLAIN = Dsn(host="db", user="maestro", database="maestro")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("postgresql://maestro@db/maestro", PLAIN, id="url"),
        pytest.param("postgres://maestro@db:5432", PLAIN, id="database-is-named-like-the-user"),
        pytest.param("host=db user=maestro dbname=maestro", PLAIN, id="words"),
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
            id="quoted-word",
        ),
        pytest.param("postgresql://u@[::1]:6000/d", Dsn(host="::1", port=6000, user="u", database="d"), id="ipv6"),
    ],
)
def test_reads(text: str, expected: Dsn) -> None:
    assert Dsn.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("mysql://u:hunter2@db/d", "does not begin with postgresql://", id="other-database"),
        pytest.param("postgresql://db/d", "names no user", id="no-user"),
        pytest.param("postgresql://u:hunter2@/d", "names no host", id="no-host"),
        pytest.param("postgresql://u:hunter2@db:x/d", "is not a URL", id="port-is-a-word"),
        pytest.param("host=db user=u port=0", "has a port", id="port-zero"),
        pytest.param("postgresql://u:hunter2@a,b/d", "names several hosts", id="two-hosts"),
        pytest.param("postgresql://u:hunter2@db/d?fetch=1", "has the parameter fetch", id="unknown-parameter"),
        pytest.param("postgresql://u:hunter2@db/d?sslmode=maybe", "has an sslmode", id="unknown-sslmode"),
        pytest.param("hunter2", "is neither a URL nor words", id="a-word"),
        pytest.param("host='db user=u password=hunter2", "quotation mark", id="open-quote"),
    ],
)
def test_refuses_and_never_quotes_what_it_read(text: str, complaint: str) -> None:
    with pytest.raises(DsnError, match=complaint) as caught:
        Dsn.parse(text)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__ or "hunter2" not in str(caught.value.__context__)


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1)


@given(user=NAMES, database=NAMES, port=st.integers(1, 65535), sslmode=st.sampled_from(SSL_MODES))
@pytest.mark.parametrize("host", ["db.example", "127.0.0.1", "::1", "/run/my socket?&"])
def test_its_text_reads_back_and_holds_no_password(
    host: str, user: str, database: str, port: int, sslmode: str
) -> None:
    without = Dsn(host=host, port=port, user=user, database=database, sslmode=sslmode)
    secret = Dsn(host=host, port=port, user=user, database=database, sslmode=sslmode, password="§hunter2§")
    assert Dsn.parse(str(secret)) == without
    assert "hunter2" not in str(secret) + repr(secret)


def test_the_driver_gets_the_password() -> None:
    kwargs = Dsn.parse("postgresql://u:hunter2@db/d?sslmode=require").connect_kwargs()
    assert kwargs == {
        "host": "db",
        "port": 5432,
        "user": "u",
        "password": "hunter2",
        "database": "d",
        "ssl": "require",
    }


def test_a_root_certificate_is_read_even_for_require(tmp_path: Path) -> None:
    dsn = Dsn(host="db", user="u", database="d", sslmode="require", rootcert=tmp_path / "missing.pem")
    with pytest.raises(FileNotFoundError):
        dsn.connect_kwargs()
