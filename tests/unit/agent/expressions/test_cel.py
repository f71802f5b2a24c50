"""Values and errors of CEL expressions, and bounds of their evaluation."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.agent.expressions import regex
from maestropy.agent.expressions.budget import Budget, BudgetExceeded
from maestropy.agent.expressions.cel import interpreter, values

OBJECT = {
    "a": 1,
    "b": True,
    "n": None,
    "s": "hello",
    "f": 1.5,
    "l": [1, 2, 3],
    "m": {"k": "v", "x.y": 2},
    "status": {
        "active": 1,
        "conditions": [{"type": "Complete", "status": "True"}, {"type": "Ready", "status": "False"}],
    },
    "q": "1Gi",
    "t": "2024-05-06T07:08:09Z",
}
VARIABLES = frozenset(["object"])
STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def evaluate(expression: str, *, variable: object = OBJECT) -> object:
    return interpreter.evaluate(expression, {"object": variable}, budget=Budget())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # operators
        ("1 + 2 * 3 - 4", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("5.0 / 2.0", 2.5),
        ("1u + 2u", 3),
        ("object.a == 1.0", True),
        ("object.a == 'x'", False),
        ("object.f > 1", True),
        ("'abc' < 'abd'", True),
        ("[1] + [2] == [1, 2]", True),
        ("1 in object.l && 'k' in object.m && !('z' in object.m)", True),
        ("true ? 1 : 2", 1),
        ("!(false || false)", True),
        ("0x1F + 1", 32),
        ("r'\\d' + \"\\n\" == '\\\\d\\n'", True),
        # an operand that decides the result
        ("object.zz || true", True),
        ("false && object.zz", False),
        ("[1, 0].exists(x, 1 / x == 1)", True),
        ("[0, 1].all(x, 1 / x == 2)", False),
        # members
        ("object.m['x.y']", 2),
        ("object.status.conditions[0].type", "Complete"),
        ("has(object.a) && !has(object.zz)", True),
        ("object.n == null", True),
        # optional
        ("object.?a.orValue(5)", 1),
        ("object.?zz.?deep.orValue(5)", 5),
        ("object.?status.active.value()", 1),
        ("object[?'zz'].hasValue()", False),
        ("object.l[?9].orValue(7)", 7),
        ("optional.of(1).optMap(x, x + 1).value()", 2),
        ("optional.of(1).optFlatMap(x, optional.none()).hasValue()", False),
        ("[1, ?optional.none(), ?optional.of(3)].size()", 2),
        ("{'a': 1, ?'b': optional.none()}.size()", 1),
        # macros
        ("object.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True')", True),
        ("object.status.conditions.all(c, c.status == 'True')", False),
        ("object.status.conditions.exists_one(c, c.status == 'True')", True),
        ("object.l.map(x, x > 1, x * 2) == [4, 6]", True),
        ("object.l.filter(x, x > 1).size()", 2),
        ("object.m.exists(k, k == 'k')", True),
        # conversions
        ("int('5') + int(5.9) + int(1u)", 11),
        ("string(1.5) + string(true) + string(1e21)", "1.5true1e+21"),
        ("type(1) == int && type(object.l) == list", True),
        ("timestamp(object.t).getFullYear()", 2024),
        ("timestamp(object.t).getHours('+02:00')", 9),
        ("timestamp(object.t) - timestamp('2024-05-06T07:08:00Z') == duration('9s')", True),
        ("duration('1h30m').getMinutes()", 90),
        # strings
        ("'a,b,c'.split(',', 2)[1]", "b,c"),
        ("'AbC'.lowerAscii() + 'abc'.substring(1, 2) + ' x '.trim()", "abcbx"),
        ("'%s-%d-%.2f'.format(['a', 1, 1.5])", "a-1-1.50"),
        ("['a', 'b'].join('-').replace('-', '+')", "a+b"),
        ("'abcb'.lastIndexOf('b')", 3),
        ("strings.quote('a\"b')", '"a\\"b"'),
        # kubernetes
        ("[3, 1, 2].sum() + [3, 1, 2].max() + [1, 2, 1].lastIndexOf(1)", 11),
        ("'a1b22'.findAll('[0-9]+')[1]", "22"),
        ("'foobar'.matches('^fo+b')", True),
        ("quantity(object.q).isGreaterThan(quantity('1Mi'))", True),
        ("quantity('50k').add(20).sub(quantity('19k')).compareTo(quantity('31020'))", 0),
        ("isQuantity('abc')", False),
        ("url('https://example.com:80/path').getHostname()", "example.com"),
        ("cidr('192.168.0.0/24').containsIP(ip('192.168.0.1'))", True),
        ("ip('::1').isLoopback() && isIP('1.2.3.4')", True),
        ("semver('1.0.0-alpha').isLessThan(semver('1.0.0'))", True),
        # hasConditions
        ("hasConditions(object.status)", True),
        ("hasConditions({})", False),
        ("hasConditions('text')", False),
        ("hasConditions([])", False),
        ("hasConditions(null)", False),
        ("hasConditions({'conditions': []})", False),
    ],
)
def test_expression_value(expression: str, expected: object) -> None:
    value = evaluate(expression)
    assert value == expected
    assert isinstance(value, bool) is isinstance(expected, bool)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("object.missing == 1", "no such key: missing"),
        ("object.l[9]", "index out of bounds: 9"),
        ("object.l['x']", "unsupported index type 'string' in list"),
        ("object.l.x", "unsupported index type 'string' in list"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("object.a + 'x'", "no such overload"),
        ("object.a ? 1 : 2", "no such overload"),
        ("object.zz || false", "no such key: zz"),
        ("object.?zz.value()", "optional.none() dereference"),
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("'abc'.substring(5)", "index out of range: 5"),
        ("[].max()", "max called on empty list"),
        ("'x'.endsWith(1)", "no such overload"),
        ("size(object.a, 1, 2)", "no such overload: size"),
    ],
)
def test_evaluation_error(expression: str, problem: str) -> None:
    with pytest.raises(values.CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("expression", "headline"),
    [
        ("badcel", "ERROR: <input>:1:1: undeclared reference to 'badcel' (in container '')"),
        ("[2, 1].sort()", "ERROR: <input>:1:12: undeclared reference to 'sort' (in container '')"),
        ("[2].sortBy(e, e)", "ERROR: <input>:1:11: undeclared reference to 'sortBy' (in container '')"),
        ("lists.range(3)", "ERROR: <input>:1:1: undeclared reference to 'lists' (in container '')"),
        ("object.foo()", "ERROR: <input>:1:11: undeclared reference to 'foo' (in container '')"),
        ("1 2", "ERROR: <input>:1:3: Syntax error: extraneous input '2' expecting <EOF>"),
        ("for", "ERROR: <input>:1:1: reserved identifier: for"),
        ("@", "ERROR: <input>:1:1: Syntax error: token recognition error at: '@'"),
        ("1 +\n  )", f"ERROR: <input>:2:3: Syntax error: mismatched input ')' expecting {STARTS}"),
        ("9223372036854775808", "ERROR: <input>:1:1: invalid int literal"),
    ],
)
def test_compile_error(expression: str, headline: str) -> None:
    with pytest.raises(values.CompileError) as caught:
        evaluate(expression)
    assert caught.value.headline == headline
    assert str(caught.value).startswith(f"{headline}\n | ")


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("object.l.all(x, object.l.all(y, object.l.all(z, z >= 0)))", id="loops-in-loops"),
        pytest.param("object.l.map(x, object.s + object.s).join('').matches('(x+x+)+y')", id="regex-on-long-text"),
        pytest.param("object.l.map(x, object.l).map(y, y + y).map(z, z + z + z).size()", id="growing-lists"),
    ],
)
def test_budget_ends_expensive_expression(expression: str) -> None:
    with pytest.raises(BudgetExceeded, match="the expression takes more than"):
        evaluate(expression, variable={"l": [*range(1000)], "s": "x" * 3000})


def test_expressions_share_budget() -> None:
    budget = Budget(30)
    program = interpreter.compiled("object.a + object.a == 2", variables=VARIABLES)
    assert program.evaluate({"object": OBJECT}, budget=budget) is True
    assert 0 < budget.steps_left < 30
    program.evaluate({"object": OBJECT}, budget=budget)
    with pytest.raises(BudgetExceeded):
        program.evaluate({"object": OBJECT}, budget=budget)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000,
        "!" * 5000 + "true",
        "1" + "+1" * 5000,
        "[" * 500,
        "object" + ".a" * 5000,
        "-" * 5000 + "1",
        "a" * 20000,
        "true" + "&&true" * 2000,
        "object.l" + ".map(x, x)" * 39,
    ],
)
def test_deeply_nested_expression_is_rejected(expression: str) -> None:
    with contextlib.suppress(values.CelError, BudgetExceeded):
        evaluate(expression)


PIECES = st.sampled_from(
    [
        "object",
        ".a",
        ".l",
        ".s",
        "[0]",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "<",
        "&&",
        "||",
        "!",
        "1",
        "1u",
        "1.5",
        "'x'",
        "b'x'",
        "null",
        "true",
        "has(",
        ".map(x, x",
        ".size()",
        " in ",
        ".?k",
        "optional.of(",
        ".orValue(",
        "quantity('1')",
        ".matches('a*')",
        "duration('1s')",
        "string(",
        "int(",
        ".format([",
    ]
)


@given(st.text(max_size=30) | st.lists(PIECES, max_size=12).map("".join))
def test_any_text_is_evaluated_or_rejected(expression: str) -> None:
    with contextlib.suppress(values.CelError, BudgetExceeded):
        evaluate(expression)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a+", "baac", (1, 3)),
        ("a+?", "baac", (1, 2)),
        ("^b|c$", "bc", (0, 1)),
        ("(?:ab|a)b", "abb", (0, 3)),
        ("[^a-c]", "abcd", (3, 4)),
        (r"\bfoo\b", "a foo b", (2, 5)),
        (r"\d{2,3}", "1 1234", (2, 5)),
        ("(?i)HELLO", "say hello", (4, 9)),
        ("", "x", (0, 0)),
        ("x", "", None),
        ("(a+)+$", "a" * 40 + "b", None),
        ("(x+x+)+y", "x" * 60, None),
    ],
)
def test_regular_expressions(pattern: str, text: str, expected: tuple[int, int] | None) -> None:
    assert regex.search(pattern, text, budget=Budget()) == expected


@pytest.mark.parametrize(
    "pattern",
    ["(", r"(a)\1", "(?=a)", "(?<!a)b", "a{2000}{2000}", "(?:a{500}){500}", "x" * 5000],
    ids=["open-group", "back-reference", "look-ahead", "look-behind", "repeat-count", "nested-repeat", "too-long"],
)
def test_rejected_regular_expressions(pattern: str) -> None:
    with pytest.raises(regex.RegexError):
        regex.search(pattern, "a", budget=Budget())


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?:){4294967294}", ""),
        ("|" * 650, "a" * 1000),
        ("(x+x+)+y", "x" * 100_000),
        ("(?:a?){60}a{60}", "a" * 100_000),
    ],
    ids=["huge-empty-repeat", "650-empty-branches", "nested-plus", "optional-run"],
)
def test_regular_expressions_that_explode_elsewhere_end_within_their_budget(pattern: str, text: str) -> None:
    with contextlib.suppress(BudgetExceeded, regex.RegexError):
        regex.search(pattern, text, budget=Budget(200_000))
