import pytest

from maestropy.journal import chain


def raised(outer: Exception, *causes: Exception) -> Exception:
    current = outer
    for cause in causes:
        current.__cause__ = cause
        current = cause
    return outer


def circular_error() -> Exception:
    outer = ValueError("a")
    outer.__context__ = inner = ValueError("b")
    inner.__context__ = outer
    return outer


@pytest.mark.parametrize(
    ("err", "text"),
    [
        pytest.param("as it is", "as it is", id="plain-text"),
        pytest.param(raised(ValueError("a"), OSError("b"), TypeError("c")), "a: b: c", id="causes"),
        pytest.param(raised(ValueError("a: b"), OSError("b")), "a: b", id="cause-in-message"),
        pytest.param(raised(ValueError("a"), TimeoutError()), "a: TimeoutError", id="cause-without-text"),
        pytest.param(KeyError("x"), "KeyError: 'x'", id="key-error"),
        pytest.param(
            ExceptionGroup("two failed", [raised(ValueError("a"), OSError("b")), OSError("c")]),
            "two failed [a: b; c]",
            id="exception-group",
        ),
    ],
)
def test_error_is_described_with_its_causes(err: BaseException | str, text: str) -> None:
    assert chain.describe(err) == text


@pytest.mark.parametrize(("is_suppressed", "text"), [(True, "outer"), (False, "outer: inner")])
def test_context_is_described_unless_suppressed(is_suppressed: bool, text: str) -> None:
    err = ValueError("outer")
    err.__context__ = OSError("inner")
    err.__suppress_context__ = is_suppressed
    assert chain.describe(err) == text


def test_circular_causes_are_cut() -> None:
    assert chain.describe(circular_error()).startswith("a: b: a")


def test_long_description_is_cut() -> None:
    text = chain.describe(ValueError("x" * 10_000))
    assert len(text) < chain.MAX_LENGTH + 50
    assert text.endswith("… (5904 more characters)")
