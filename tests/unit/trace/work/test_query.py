from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.trace import psql
from maestropy.trace.errors import InvalidArguments, NoAccess
from maestropy.trace.work import statements
from maestropy.trace.work.query import ManifestQuery, WorkQuery, checked, parse_label, parse_list, parse_manifest
from maestropy.trace.work.readers import SqlDatabaseReader
from maestropy.wire.works import resource_id


@pytest.mark.parametrize(
    ("written", "manifest"),
    [
        pytest.param(
            "deployment/default/nginx", ManifestQuery(kind="deployment", namespace="default", name="nginx"), id="full"
        ),
        pytest.param("Namespace/team", ManifestQuery(kind="Namespace", name="team"), id="cluster-scoped"),
        pytest.param(
            "cluster.cluster.x-k8s.io/ns/a",
            ManifestQuery(kind="cluster", group="cluster.x-k8s.io", namespace="ns", name="a"),
            id="with-its-group",
        ),
    ],
)
def test_manifest_is_parsed(written: str, manifest: ManifestQuery) -> None:
    assert parse_manifest(written) == manifest


@pytest.mark.parametrize("written", ["nginx", "a/b/c/d", "deployment/", "/x", "deployment//x", ""])
def test_invalid_manifest_is_rejected(written: str) -> None:
    with pytest.raises(InvalidArguments, match="KIND"):
        parse_manifest(written)


@pytest.mark.parametrize(
    ("kind", "spelling"),
    [("deploy", "deployment"), ("Deployments", "deployment"), ("networkpolicies", "networkpolicy"), ("SVC", "service")],
)
def test_kinds_accept_every_spelling(kind: str, spelling: str) -> None:
    assert spelling in ManifestQuery(kind=kind, name="x").kinds


def test_list_of_ids_is_parsed() -> None:
    assert parse_list('\ufeffid,name\r\n"a-1",x\r\n# no\n\nb-2  # why\na-1\n') == ("a-1", "b-2")
    with pytest.raises(InvalidArguments, match="no identifier"):
        parse_list("# nothing\n")


def test_label_is_parsed() -> None:
    assert parse_label("api.openshift.com/id=1=2") == ("api.openshift.com/id", "1=2")
    with pytest.raises(InvalidArguments, match="KEY=VALUE"):
        parse_label("nothing")


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(WorkQuery(entry="resource-id", values=("",)), id="empty"),
        pytest.param(WorkQuery(entry="resource-id", values=("a\0b",)), id="nul"),
        pytest.param(WorkQuery(entry="work-name", values=("x" * 2000,)), id="too-long"),
        pytest.param(WorkQuery(entry="work-name", values=("\ud800",)), id="half-a-character"),
        pytest.param(WorkQuery(entry="manifest", manifest=ManifestQuery(kind="", name="x")), id="no-kind"),
    ],
)
def test_invalid_queries_are_rejected(query: WorkQuery) -> None:
    with pytest.raises(InvalidArguments):
        checked(query)


@pytest.mark.parametrize(
    "query",
    [
        WorkQuery(entry="resource-id", values=("SECRET-WORD",)),
        WorkQuery(entry="file", values=("SECRET-WORD", "b")),
        WorkQuery(entry="work-name", values=("SECRET-WORD",), consumer="c", source="s"),
        WorkQuery(entry="applied-work", values=("SECRET-WORD",)),
        WorkQuery(entry="name-like", values=("SECRET-WORD",)),
        WorkQuery(entry="label", values=("SECRET-WORD", "SECRET-WORD")),
        WorkQuery(entry="op-id", values=("SECRET-WORD",)),
        WorkQuery(entry="manifest", manifest=ManifestQuery(kind="SECRET-WORD", name="SECRET-WORD")),
    ],
    ids=lambda query: query.entry,
)
def test_identifiers_are_parameters(query: WorkQuery) -> None:
    found = statements.statement(query)
    assert "secret-word" not in found.sql.lower()
    assert "<" not in found.sql.replace("<=", "")
    for number in range(1, len(found.parameters) + 1):
        assert f"${number}" in found.sql
    assert f"${len(found.parameters) + 1}" not in found.sql
    assert any("secret-word" in parameter.lower() for parameter in found.parameters)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_literal_is_one_token_of_printable_ascii(text: str) -> None:
    literal = psql.literal(text)
    assert literal.isascii()
    assert literal.isprintable()
    body = literal.removeprefix("E")
    assert (body[0], body[-1]) == ("'", "'")
    inner = body[1:-1].replace("''", "") if not literal.startswith("E") else body[1:-1]
    if not literal.startswith("E"):
        assert "'" not in inner
        assert "\\" not in inner


def test_script_is_read_only_and_ends_psql() -> None:
    script = psql.script(psql.query("SELECT $1", ("x'y",), timeout_seconds=15))
    assert (
        script.index("BEGIN READ ONLY;") < script.index("PREPARE") < script.index("EXECUTE") < script.index("ROLLBACK;")
    )
    assert "EXECUTE trace_query ('x''y');" in script
    assert script.endswith("\\q\n")


def test_documents_are_read_between_other_output() -> None:
    printed = (
        b"connecting...\nSET\nBEGIN\n"
        + orjson.dumps({"trace": "row", "id": "a\nb"})
        + b'\n{"no": 1}\n{broken\nROLLBACK\n'
    )
    assert list(psql.documents(printed)) == [{"trace": "row", "id": "a\nb"}]
    assert psql.complaint(b"\npsql: error: FATAL:  token expired\n") == "psql: error: FATAL:  token expired"


class _Runner:
    """A database that rejects the statement about consumers."""

    description = "database"

    def __init__(self) -> None:
        self.parameters: list[Sequence[str]] = []

    async def documents(self, sql: str, parameters: Sequence[str]) -> list[dict[str, Any]]:
        if "FROM consumers" in sql:
            raise NoAccess("permission denied for table consumers")
        self.parameters.append(parameters)
        return []


async def test_name_is_searched_without_the_right_to_read_consumers() -> None:
    runner = _Runner()
    assert (await SqlDatabaseReader(runner).find(WorkQuery(entry="work-name", values=("web",)))).rows == ()
    assert runner.parameters == [("", "", '["web"]', statements.SCAN, "[]")]


async def test_source_and_consumer_give_the_id_without_another_statement() -> None:
    runner = _Runner()
    query = WorkQuery(entry="work-name", values=("web",), consumer="c", source="s")
    await SqlDatabaseReader(runner).find(query)
    computed = resource_id.resource_id("s", namespace="c", name="web")
    assert [parameters[4] for parameters in runner.parameters] == [f'["{computed}"]']
