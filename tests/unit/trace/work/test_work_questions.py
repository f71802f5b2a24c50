import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.trace import psql
from maestropy.trace.errors import BadQuestion
from maestropy.trace.work import statements
from maestropy.trace.work.question import Manifest, Question, checked, parse_label, parse_list, parse_manifest


@pytest.mark.parametrize(
    ("written", "manifest"),
    [
        pytest.param(
            "deployment/default/nginx", Manifest(kind="deployment", namespace="default", name="nginx"), id="full"
        ),
        pytest.param("Namespace/team", Manifest(kind="Namespace", name="team"), id="cluster-scoped"),
        pytest.param(
            "cluster.cluster.x-k8s.io/ns/a",
            Manifest(kind="cluster", group="cluster.x-k8s.io", namespace="ns", name="a"),
            id="with-its-group",
        ),
    ],
)
def test_a_manifest_as_written(written: str, manifest: Manifest) -> None:
    assert parse_manifest(written) == manifest


@pytest.mark.parametrize("written", ["nginx", "a/b/c/d", "deployment/", "/x", "deployment//x", ""])
def test_a_manifest_that_cannot_be_read(written: str) -> None:
    with pytest.raises(BadQuestion, match="KIND"):
        parse_manifest(written)


@pytest.mark.parametrize(
    ("kind", "spelling"),
    [("deploy", "deployment"), ("Deployments", "deployment"), ("networkpolicies", "networkpolicy"), ("SVC", "service")],
)
def test_kinds_in_every_spelling(kind: str, spelling: str) -> None:
    assert spelling in Manifest(kind=kind, name="x").kinds


def test_a_list_of_ids() -> None:
    assert parse_list('\ufeffid,name\r\n"a-1",x\r\n# no\n\nb-2  # why\na-1\n') == ("a-1", "b-2")
    with pytest.raises(BadQuestion, match="no identifier"):
        parse_list("# nothing\n")


def test_a_label() -> None:
    assert parse_label("api.openshift.com/id=1=2") == ("api.openshift.com/id", "1=2")
    with pytest.raises(BadQuestion, match="KEY=VALUE"):
        parse_label("nothing")


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(Question(entry="resource-id", values=("",)), id="empty"),
        pytest.param(Question(entry="resource-id", values=("a\0b",)), id="nul"),
        pytest.param(Question(entry="work-name", values=("x" * 2000,)), id="too-long"),
        pytest.param(Question(entry="work-name", values=("\ud800",)), id="half-a-character"),
        pytest.param(Question(entry="manifest", manifest=Manifest(kind="", name="x")), id="no-kind"),
    ],
)
def test_questions_without_sense_are_refused(question: Question) -> None:
    with pytest.raises(BadQuestion):
        checked(question)


@pytest.mark.parametrize(
    "question",
    [
        Question(entry="resource-id", values=("SECRET-WORD",)),
        Question(entry="file", values=("SECRET-WORD", "b")),
        Question(entry="work-name", values=("SECRET-WORD",), consumer="c", source="s"),
        Question(entry="applied-work", values=("SECRET-WORD",)),
        Question(entry="name-like", values=("SECRET-WORD",)),
        Question(entry="label", values=("SECRET-WORD", "SECRET-WORD")),
        Question(entry="op-id", values=("SECRET-WORD",)),
        Question(entry="manifest", manifest=Manifest(kind="SECRET-WORD", name="SECRET-WORD")),
    ],
    ids=lambda question: question.entry,
)
def test_an_identifier_is_a_parameter_and_every_parameter_is_used(question: Question) -> None:
    found = statements.statement(question)
    assert "secret-word" not in found.sql.lower()
    assert "<" not in found.sql.replace("<=", "")
    for number in range(1, len(found.parameters) + 1):
        assert f"${number}" in found.sql
    assert f"${len(found.parameters) + 1}" not in found.sql
    assert any("secret-word" in each.lower() for each in found.parameters)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_literal_is_one_token_of_printable_ascii(text: str) -> None:
    literal = psql.literal(text)
    assert literal.isascii()
    assert literal.isprintable()
    body = literal.removeprefix("E")
    assert (body[0], body[-1]) == ("'", "'")
    inner = body[1:-1].replace("''", "") if not literal.startswith("E") else body[1:-1]
    if not literal.startswith("E"):
        assert "'" not in inner
        assert "\\" not in inner


def test_a_script_is_read_only_and_ends_itself() -> None:
    script = psql.script(psql.question("SELECT $1", ("x'y",), timeout_seconds=15))
    assert (
        script.index("BEGIN READ ONLY;") < script.index("PREPARE") < script.index("EXECUTE") < script.index("ROLLBACK;")
    )
    assert "EXECUTE trace_question ('x''y');" in script
    assert script.endswith("\\q\n")


def test_documents_are_found_among_greetings() -> None:
    printed = (
        b"connecting...\nSET\nBEGIN\n"
        + orjson.dumps({"trace": "row", "id": "a\nb"})
        + b'\n{"no": 1}\n{broken\nROLLBACK\n'
    )
    assert list(psql.documents(printed)) == [{"trace": "row", "id": "a\nb"}]
    assert psql.complaint(b"\npsql: error: FATAL:  token expired\n") == "psql: error: FATAL:  token expired"
