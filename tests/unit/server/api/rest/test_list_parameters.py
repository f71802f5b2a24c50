"""List parameters as in the Go server; field selection, operation IDs and gzip."""

import pytest
from starlette.datastructures import QueryParams

from maestropy.server.api.rest import field_selection, list_parameters
from maestropy.server.api.rest.http import compression, errors, operation_id


@pytest.mark.parametrize(
    ("query", "page", "size", "offset"),
    [
        pytest.param("", 1, 100, 0, id="defaults"),
        pytest.param("page=&size=", 1, 100, 0, id="empty-is-absent"),
        pytest.param("page=3&size=20", 3, 20, 40, id="third-page"),
        pytest.param("page=0&size=20", 0, 20, 0, id="page-0-is-the-first"),
        pytest.param("page=-4&size=20", -4, 20, 0, id="negative-page-is-the-first"),
        pytest.param("page=x", 0, 100, 0, id="not-a-number-is-0"),
        pytest.param("page=%202%20", 2, 100, 100, id="blanks-around"),
        pytest.param("size=abc", 1, 0, 0, id="size-not-a-number-is-0"),
        pytest.param("size=1_0", 1, 0, 0, id="python-number-is-not-a-number"),
        pytest.param("size=%D9%A3", 1, 0, 0, id="arabic-digit-is-not-a-number"),
        pytest.param("size=-5", 1, 65500, 0, id="negative-size-is-the-largest"),
        pytest.param("size=65501", 1, 65500, 0, id="too-large-size"),
        pytest.param("size=2&size=3", 1, 2, 0, id="first-of-two"),
        pytest.param(f"size={'9' * 5000}", 1, 65500, 0, id="very-long-number"),
        pytest.param(f"page={'9' * 30}", 2**31 - 1, 100, (2**31 - 2) * 100, id="very-long-page"),
    ],
)
def test_numbers(query: str, page: int, size: int, offset: int) -> None:
    parameters = list_parameters.read(QueryParams(query))

    assert (parameters.page, parameters.size, parameters.offset) == (page, size, offset)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", set(field_selection.CONSUMER_KEYS), id="all"),
        pytest.param(" , ", set(field_selection.CONSUMER_KEYS), id="only-commas"),
        pytest.param("name", {"id", "name"}, id="id-is-always-selected"),
        pytest.param(" name , labels ,name", {"id", "name", "labels"}, id="blanks-and-duplicates"),
    ],
)
def test_fields(text: str, expected: set[str]) -> None:
    assert field_selection.selected_keys(text, keys=field_selection.CONSUMER_KEYS, kind="Consumer") == expected


def test_unknown_fields_are_named() -> None:
    with pytest.raises(errors.RestError) as caught:
        field_selection.selected_keys("name,zeta,alpha", keys=field_selection.CONSUMER_KEYS, kind="Consumer")

    assert caught.value.kind.id == 8
    assert caught.value.reason == (
        "The following field(s) doesn't exist in `Consumer`: alpha, zeta; "
        "fields: created_at, href, id, kind, labels, name, updated_at"
    )


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param(None, None, id="absent"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b"my-op", "my-op", id="plain"),
        pytest.param(b"  a b  ", "a b", id="blanks-around"),
        pytest.param(b"x" * 128, "x" * 128, id="longest"),
        pytest.param(b"x" * 129, None, id="too-long"),
        pytest.param(b"a\tb", None, id="control-character"),
        pytest.param(b"caf\xe9", None, id="not-ascii"),
    ],
)
def test_operation_ids_of_clients(header: bytes | None, expected: str | None) -> None:
    assert operation_id.accepted(header) == expected


def test_ksuid_equals_a_published_example() -> None:
    generated = operation_id.ksuid(1400000000 + 107608047, "b5a1cd34-b5f9-9d11-54fb-6853345c9735")

    assert generated == "0ujtsYcgvSTl8PAuAdqWYSMnLOv"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param("", False, id="nothing"),
        pytest.param("gzip", True, id="gzip"),
        pytest.param("deflate, gzip;q=1.0, *;q=0.5", True, id="among-others"),
        pytest.param("gzip;q=0", False, id="forbidden"),
        pytest.param("gzip; q=0.0, br", False, id="forbidden-with-blank"),
        pytest.param("x-gzip-like", False, id="another-name"),
    ],
)
def test_accepts_gzip(header: str, expected: bool) -> None:
    assert compression.accepts_gzip(header) is expected
