"""Text that has to be Go's to the byte."""

import pytest

from maestropy.agent.decide import gotext


@pytest.mark.parametrize(
    ("value", "rendered", "json"),
    [
        pytest.param(
            {"b": [1, None, True], "a": "x y"},
            "map[a:x y b:[1 <nil> true]]",
            '{"a":"x y","b":[1,null,true]}',
            id="nested",
        ),
        pytest.param(1000000.0, "1e+06", "1000000", id="a-million"),
        pytest.param(3.25e12, "3.25e+12", "3250000000000", id="large"),
        pytest.param(1e21, "1e+21", "1e+21", id="very-large"),
        pytest.param(0.00001, "1e-05", "0.00001", id="small"),
        pytest.param(1e-7, "1e-07", "1e-7", id="very-small"),
        pytest.param(4.0, "4", "4", id="whole"),
        pytest.param(-0.0, "-0", "-0", id="minus-zero"),
        pytest.param("<a&b>\u2028", "<a&b>\u2028", r'"\u003ca\u0026b\u003e\u2028"', id="markup"),
    ],
)
def test_texts(value: object, rendered: str, json: str) -> None:
    assert gotext.rendering(value) == rendered
    assert gotext.json_text(value) == json


def test_a_long_value_is_shortened_in_messages() -> None:
    assert len(gotext.shown("x" * 1000)) < 300


def test_the_hash_of_an_object() -> None:
    # MD5 of &{map[kind:X spec:map[replicas:1]]}
    assert gotext.object_hash({"spec": {"replicas": 1}, "kind": "X"}) == "f5c6deae4d2d5a1c7ebb1f2c69c7b987"
