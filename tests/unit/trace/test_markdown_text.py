"""No text of a log or a cluster is active in the Markdown of any tracer."""

import pytest
from markdown_it import MarkdownIt

from maestropy.trace import markdown_text

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![x](http://x/y)",
    "a | b `<b>` ``` <i>",
    "```\n<img src=x>\n```",
    "~~~\n<img src=x>",
    "    <b>\n\n<b>",
    "- <u>\n# head\n1. <s>",
    "<!-- x -->",
    "&lt;b&gt; \\<b>",
    "`<b>",
)


def tokens(text: str) -> list[str]:
    """Return the types of all tokens of a document."""
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    return [inner.type for token in parsed for inner in (token, *(token.children or ()))]


ACTIVE = {"html_block", "html_inline", "link_open", "image"}


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_not_active(text: str) -> None:
    escaped = markdown_text.escaped(text)
    documents = {
        "paragraph": escaped,
        "list": f"- {escaped}",
        "heading": f"## {escaped}",
        "span": f"x {markdown_text.code(text)} y",
        "block after a list": "\n".join(["- x", *markdown_text.code_block([text]), "end"]),
        "table": "\n".join(markdown_text.table(["a", "b"], [[text, text]])),
    }
    for place, document in documents.items():
        assert not ACTIVE & set(tokens(document)), place
    assert tokens(documents["table"]).count("td_open") == 2
    assert tokens(documents["block after a list"]).count("fence") == 1


@pytest.mark.parametrize("text", ["a_b", "1. x", "- x", "a*b*", "x & y", "<b>", "a\\b"])
def test_text_is_shown_as_it_is(text: str) -> None:
    parsed = MarkdownIt("commonmark").parse(markdown_text.escaped(text))
    shown = "".join(child.content for token in parsed for child in token.children or ())
    assert shown == text


def test_secret_is_left_out() -> None:
    text = "api_key=hunter2"
    assert "hunter2" not in markdown_text.escaped(text)
    assert "hunter2" not in markdown_text.code(text)
    assert "hunter2" not in "".join(markdown_text.code_block(["client_secret:", "  hunter2"]))
