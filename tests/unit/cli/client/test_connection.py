"""Two variables of one setting that differ are named, with the one that counts."""

import pytest

from maestropy.cli.client import connection
from maestropy.sdk import settings


@pytest.mark.parametrize(
    ("environ", "flags", "warning"),
    [
        ({"MAESTRO_REST_URL": "http://a"}, {}, ""),
        ({"MAESTRO_REST_URL": "http://a", "MAESTRO_API_URL": "http://a"}, {}, ""),
        ({"MAESTRO_REST_URL": "", "MAESTRO_API_URL": "http://a"}, {}, ""),
        ({"MAESTRO_REST_URL": "http://a", "MAESTRO_API_URL": "http://b"}, {"rest-url": "http://c"}, ""),
        (
            {"MAESTRO_REST_URL": "http://a", "MAESTRO_API_URL": "http://b"},
            {},
            "Warning: MAESTRO_API_URL counts, and MAESTRO_REST_URL differs; unset one of them\n",
        ),
    ],
)
def test_variables_that_differ_are_named(environ: dict[str, str], flags: dict[str, str], warning: str) -> None:
    resolved = list(connection.resolve(flags, environ, stored={}, stored_origin="file", variables=settings.VARIABLES))
    assert connection._variables_warning(resolved, environ, settings.VARIABLES) == warning
