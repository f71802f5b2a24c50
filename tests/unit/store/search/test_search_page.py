"""docs/search.md shows searches that compile, errors as they are, and the columns and limits that there are."""

import re
from pathlib import Path

import pytest

from maestropy.server.api.rest import list_parameters
from maestropy.store import search
from maestropy.store.search import limits

PAGE = (Path(__file__).parents[4] / "docs" / "search.md").read_text(encoding="utf-8")
EXAMPLES = [line for block in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
ERRORS = re.findall(r"^(\S.*)\n    (.+)$", PAGE.split("## Errors")[1], re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_compiles(text: str) -> None:
    assert search.compile_search(text, collection=search.RESOURCES).sql


@pytest.mark.parametrize(("text", "reason"), ERRORS)
def test_error_is_as_shown(text: str, reason: str) -> None:
    with pytest.raises(search.SearchError) as caught:
        search.compile_search(text, collection=search.RESOURCES)
    assert (caught.value.code, caught.value.reason) == (21, reason)


@pytest.mark.parametrize(
    "text",
    [
        "version > 0 and",
        "name = 'a' and (version = 1 version = 2)",
        "name 'x'",
        "name in 'a'",
        "name in ('a' 'b')",
        "version between 1 or 2",
        "name = 'a' && version = 1",
        "!name = 'a'",
        "version => 1",
        "payload->'a' = 'x'",
        "payload.metadata.labels.grp = '7'",
        "payload->>'a' between '1' and '2'",
        "payload->>'a' > '1'",
        "payload->>a = 'x'",
        "payload->>'a' =~ 'x'",
        "deleted_at is null and payload->>'a' = 'x'",
        "metadata.name = 'x' and payload->>'a' = 'x'",
    ],
)
def test_error_says_what_to_write_instead(text: str) -> None:
    with pytest.raises(search.SearchError) as caught:
        search.compile_search(text, collection=search.RESOURCES)
    remedies = r"\bwrite |\bjoin |\bbegin |a comparison is missing|end a path|use like|written with arrows"
    assert re.search(remedies, caught.value.reason), caught.value.reason


def test_page_names_all_columns_and_limits() -> None:
    for collection in (search.RESOURCES, search.CONSUMERS):
        assert f" | {', '.join(f'`{name}`' for name in collection.columns)} |" in PAGE
    numbers = (
        *(limits.MAX_BYTES, limits.MAX_TOKENS, limits.MAX_TERMS, limits.MAX_LIST, limits.MAX_DEPTH, limits.MAX_JOINS),
        list_parameters.MAX_SIZE,
    )
    section = PAGE.split("## Limits")[1].split("##")[0]
    assert [f"{number:,}" for number in numbers if f"{number:,}" not in section] == []


def test_page_is_linked() -> None:
    root = Path(__file__).parents[4]
    for page in ("mkdocs.yml", "docs/sdk.md", "docs/cli.md", "docs/performance.md", "docs/differences.md"):
        assert "search.md" in (root / page).read_text(encoding="utf-8"), page
