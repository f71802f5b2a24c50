import pytest

from maestropy.journal import chain


def raised(outer: Exception, *causes: Exception) -> Exception:
    link = outer
    for cause in causes:
        link.__cause__ = cause
        link = cause
    return outer


def circular() -> Exception:
    outer = ValueError("a")
    outer.__context__ = inner = ValueError("b")
    inner.__context__ = outer
    return outer


@pytest.mark.parametrize(
    ("err", "text"),
    [
        pytest.param("as it is", "as it is", id="text"),
        pytest.param(raised(ValueError("a"), OSError("b"), TypeError("c")), "a: b: c", id="causes"),
        pytest.param(raised(ValueError("a: b"), OSError("b")), "a: b", id="cause-told-already"),
        pytest.param(raised(ValueError("a"), TimeoutError()), "a: TimeoutError", id="silent-cause"),
        pytest.param(KeyError("x"), "KeyError: 'x'", id="key"),
        pytest.param(
            ExceptionGroup("two failed", [raised(ValueError("a"), OSError("b")), OSError("c")]),
            "two failed [a: b; c]",
            id="group",
        ),
    ],
)
def test_describe(err: BaseException | str, text: str) -> None:
    assert chain.describe(err) == text


@pytest.mark.parametrize(("hidden", "text"), [(True, "outer"), (False, "outer: inner")])
def test_context_counts_unless_suppressed(hidden: bool, text: str) -> None:
    err = ValueError("outer")
    err.__context__ = OSError("inner")
    err.__suppress_context__ = hidden
    assert chain.describe(err) == text


def test_circles_end() -> None:
    assert chain.describe(circular()).startswith("a: b: a")


def test_long_texts_are_cut() -> None:
    text = chain.describe(ValueError("x" * 10_000))
    assert len(text) < chain.MAX_LENGTH + 50
    assert text.endswith("… (5904 more characters)")
