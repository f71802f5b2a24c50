"""Describe an exception and its causes in one text: `outer: cause: cause`.

Our errors name the operation and leave the reason to their cause, so a log record needs the whole chain.
Prints no traceback.
"""

MAX_LENGTH = 4096
"""Enough for several sentences. A driver that quotes its whole payload must not fill the log."""

_MAX_DEPTH = 16


def describe(err: BaseException | str) -> str:
    """Return the text of `err` and of its causes, outermost first, cut at `MAX_LENGTH`."""
    text = err if isinstance(err, str) else ": ".join(_texts(err))
    if len(text) <= MAX_LENGTH:
        return text
    return f"{text[:MAX_LENGTH]}… ({len(text) - MAX_LENGTH} more characters)"


def _texts(err: BaseException) -> list[str]:
    texts: list[str] = []
    link: BaseException | None = err
    while link is not None and len(texts) < _MAX_DEPTH:
        text = _own_text(link)
        # Libraries often include the text of the cause in their own message; it is written once.
        if not texts or not texts[-1].endswith(text):
            texts.append(text)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return texts


def _own_text(err: BaseException) -> str:
    if isinstance(err, BaseExceptionGroup):
        members = "; ".join(describe(member) for member in err.exceptions)
        return f"{err.message} [{members}]"
    text = str(err)
    # The texts of `KeyError('x')` and of `TimeoutError()` are useless without the name of the class.
    if not text or isinstance(err, KeyError):
        return f"{type(err).__name__}: {text}" if text else type(err).__name__
    return text
