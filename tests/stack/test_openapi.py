"""The API keeps what its OpenAPI document says: schemathesis reads the document it serves and tries it out."""

import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.stack import rest_live

load_all_checks()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rest_live.Live]:
    with rest_live.postgres(tmp_path_factory.mktemp("postgres")) as address, rest_live.live(address) as running:
        running.add_bundles(3, status=rest_live.status())
        running.sql("UPDATE resources SET deleted_at = now() WHERE id = 'bundle-00001'")
        yield running


# Read from the package, because tests are collected before there is a server; that it serves the same is tested below.
DOCUMENT = json.loads((resources.files("maestropy.server.api.rest") / "openapi.json").read_bytes())
CONFIG = schemathesis.Config.from_dict({"generation": {"allow-x00": False}})
schema = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_keeps_the_document(case: Any, server: rest_live.Live) -> None:
    excluded = []
    if case.method == "GET":
        # Lists read numbers as leniently as the reference does, and the grammar of `search` is no regular expression.
        excluded = [negative_data_rejection, positive_data_acceptance]
    response = case.call(base_url=server.url)
    case.validate_response(response, excluded_checks=excluded)


def test_the_document_describes_what_is_there(server: rest_live.Live) -> None:
    with server.client() as api:
        assert api.get(f"{rest_live.BASE}/openapi").json() == DOCUMENT
        for template, operations in DOCUMENT["paths"].items():
            path = template.replace("{id}", "none")
            allowed = set(re.split(", ", api.request("TRACE", path).headers["allow"])) - {"OPTIONS"}
            assert allowed == {method.upper() for method in operations}, template


@pytest.mark.parametrize("bundle", ["bundle-00000", "bundle-00001"], ids=["applied", "being-deleted"])
def test_real_bundles_fit_the_document(server: rest_live.Live, bundle: str) -> None:
    with server.client() as api:
        for template, path in (
            ("/api/maestro/v1/resource-bundles/{id}", f"{rest_live.BASE}/resource-bundles/{bundle}"),
            ("/api/maestro/v1/resource-bundles", f"{rest_live.BASE}/resource-bundles?fields=id,status,metadata"),
            ("/api/maestro/v1/consumers", f"{rest_live.BASE}/consumers"),
            ("/api/maestro/v1/consumers/{id}", f"{rest_live.BASE}/consumers/cluster1"),
        ):
            answer = api.get(path)
            assert answer.status_code == 200
            schema[template]["GET"].validate_response(answer)
