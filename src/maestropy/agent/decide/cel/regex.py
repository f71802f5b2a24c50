"""Regular expressions in linear time.

Python's own engine backtracks, and a pattern from a stranger could keep the agent busy for years. This one reads the
pattern with Python's parser and runs all alternatives side by side, so its time is bounded by pattern times text.
Back-references and look-around, which Kubernetes' engine does not know either, are refused.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]  # Python's parser has no public door
from re import _parser  # type: ignore[attr-defined]  # as above
from typing import Any

from maestropy.agent.decide.cel.values import CelError

MAX_PROGRAM = 2000
"""Instructions of a compiled pattern; repetitions with a count are written out."""

Test = Callable[[str], bool]


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


def _is_boundary(text: str, at: int) -> bool:
    return (at > 0 and _is_word(text[at - 1])) is not (at < len(text) and _is_word(text[at]))


_ASSERTIONS: dict[Any, Callable[[str, int], bool]] = {
    op.AT_BEGINNING: lambda _, at: at == 0,
    op.AT_BEGINNING_STRING: lambda _, at: at == 0,
    op.AT_END: lambda text, at: at == len(text),
    op.AT_END_STRING: lambda text, at: at == len(text),
    op.AT_BOUNDARY: _is_boundary,
    op.AT_NON_BOUNDARY: lambda text, at: not _is_boundary(text, at),
}
_CATEGORIES: dict[Any, Test] = {
    op.CATEGORY_DIGIT: lambda char: char in "0123456789",
    op.CATEGORY_NOT_DIGIT: lambda char: char not in "0123456789",
    op.CATEGORY_SPACE: lambda char: char in "\t\n\f\r ",
    op.CATEGORY_NOT_SPACE: lambda char: char not in "\t\n\f\r ",
    op.CATEGORY_WORD: _is_word,
    op.CATEGORY_NOT_WORD: lambda char: not _is_word(char),
}


@dataclass(slots=True)
class _Program:
    """Instructions: `("char", test)`, `("split", first, second)`, `("jump", to)`, `("assert", test)`, `("match",)`."""

    flags: int
    code: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, *instruction: Any) -> int:
        if len(self.code) >= MAX_PROGRAM:
            raise CelError(f"regular expression is too large: more than {MAX_PROGRAM} instructions")
        self.code.append(instruction)
        return len(self.code) - 1


def search(pattern: str, text: str, *, spend: Callable[[int], None]) -> tuple[int, int] | None:
    """Return where `pattern` first matches in `text`."""
    return next(search_all(pattern, text, spend=spend), None)


def search_all(pattern: str, text: str, *, spend: Callable[[int], None]) -> Iterator[tuple[int, int]]:
    """Yield where `pattern` matches, from left to right and without overlap; `spend` is told the work done."""
    code = _compiled(pattern)
    start = 0
    last_end = -1
    while start <= len(text):
        found = _match(code, text, start=start, spend=spend)
        if found is None:
            return
        # An empty match right behind the last one is no match of its own.
        if found[0] != found[1] or found[0] != last_end:
            yield found
        last_end = found[1]
        start = found[1] if found[1] > found[0] else found[1] + 1


def _match(
    code: list[tuple[Any, ...]], text: str, *, start: int, spend: Callable[[int], None]
) -> tuple[int, int] | None:
    """Run all threads in step; their order is their priority, so the leftmost, then the first choice wins."""
    found: tuple[int, int] | None = None
    threads: dict[int, int] = {}
    for position in range(start, len(text) + 1):
        if found is None:
            _follow(code, 0, threads, since=position, text=text, at=position)
        elif not threads:
            break
        spend(len(threads) + 1)
        following: dict[int, int] = {}
        for counter, since in threads.items():
            instruction = code[counter]
            if instruction[0] == "match":
                found = (since, position)
                break
            if position < len(text) and instruction[1](text[position]):
                _follow(code, counter + 1, following, since=since, text=text, at=position + 1)
        threads = following
    return found


def _follow(
    code: list[tuple[Any, ...]], counter: int, threads: dict[int, int], *, since: int, text: str, at: int
) -> None:
    """Add the threads that wait at `counter`, without repeating any."""
    stack = [counter]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if current in seen or current in threads:
            continue
        seen.add(current)
        match code[current]:
            case ("split", first, second):
                stack += [second, first]
            case ("jump", to):
                stack.append(to)
            case ("assert", test):
                if test(text, at):
                    stack.append(current + 1)
            case _:
                threads[current] = since


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> list[tuple[Any, ...]]:
    try:
        tree = _parser.parse(pattern)
        program = _Program(flags=tree.state.flags)
        _sequence(program, tree)
    except (re.error, RecursionError, OverflowError) as error:
        raise CelError(f"error parsing regexp: {error}") from error
    program.add("match")
    return program.code


def _sequence(program: _Program, tree: Any) -> None:
    for kind, argument in tree:
        _element(program, kind, argument)


def _element(program: _Program, kind: Any, argument: Any) -> None:
    if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
        program.add("char", _test(kind, argument, flags=program.flags))
    elif kind is op.AT:
        if program.flags & re.MULTILINE or argument not in _ASSERTIONS:
            raise CelError("error parsing regexp: multi-line mode is not supported")
        program.add("assert", _ASSERTIONS[argument])
    elif kind is op.SUBPATTERN:
        _, added, removed, inner = argument
        if added or removed:
            raise CelError("error parsing regexp: flags of a group are not supported: put them first")
        _sequence(program, inner)
    elif kind is op.BRANCH:
        _branch(program, argument[1])
    elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        _repeat(program, *argument, is_greedy=kind is op.MAX_REPEAT)
    else:
        raise CelError(f"error parsing regexp: {str(kind).lower()} is not supported")


def _branch(program: _Program, choices: list[Any]) -> None:
    ends = []
    for choice in choices[:-1]:
        split = program.add("split", 0, 0)
        _sequence(program, choice)
        ends.append(program.add("jump", 0))
        program.code[split] = ("split", split + 1, len(program.code))
    _sequence(program, choices[-1])
    for end in ends:
        program.code[end] = ("jump", len(program.code))


def _repeat(program: _Program, least: int, most: Any, inner: Any, *, is_greedy: bool) -> None:
    for _ in range(least):
        _sequence(program, inner)
    if most is op.MAXREPEAT:
        split = program.add("split", 0, 0)
        _sequence(program, inner)
        program.add("jump", split)
        program.code[split] = _fork(split + 1, len(program.code), is_greedy=is_greedy)
        return
    splits = []
    for _ in range(most - least):
        splits.append(program.add("split", 0, 0))
        _sequence(program, inner)
    for split in splits:
        program.code[split] = _fork(split + 1, len(program.code), is_greedy=is_greedy)


def _fork(into: int, past: int, *, is_greedy: bool) -> tuple[str, int, int]:
    return ("split", into, past) if is_greedy else ("split", past, into)


def _test(kind: Any, argument: Any, *, flags: int) -> Test:
    test = _plain_test(kind, argument, flags=flags)
    if flags & re.IGNORECASE:
        return lambda char: test(char) or test(char.lower()) or test(char.upper())
    return test


def _plain_test(kind: Any, argument: Any, *, flags: int) -> Test:
    if kind is op.ANY:
        return (lambda _: True) if flags & re.DOTALL else (lambda char: char != "\n")
    if kind is op.LITERAL:
        return lambda char: ord(char) == argument
    if kind is op.NOT_LITERAL:
        return lambda char: ord(char) != argument
    if kind is op.RANGE:
        low, high = argument
        return lambda char: low <= ord(char) <= high
    if kind is op.CATEGORY:
        return _CATEGORIES[argument]
    is_negated = bool(argument) and argument[0][0] is op.NEGATE
    tests = [_plain_test(inner, value, flags=flags) for inner, value in argument if inner is not op.NEGATE]
    return lambda char: any(test(char) for test in tests) is not is_negated
