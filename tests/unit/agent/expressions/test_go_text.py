"""Text that is byte for byte Go's."""

import pytest

from maestropy.agent.expressions import go_values


@pytest.mark.parametrize(
    ("value", "rendered", "json"),
    [
        pytest.param(
            {"b": [1, None, True], "a": "x y"},
            "map[a:x y b:[1 <nil> true]]",
            '{"a":"x y","b":[1,null,true]}',
            id="nested",
        ),
        pytest.param(1000000.0, "1e+06", "1000000", id="million"),
        pytest.param(3.25e12, "3.25e+12", "3250000000000", id="large"),
        pytest.param(1e21, "1e+21", "1e+21", id="very-large"),
        pytest.param(0.00001, "1e-05", "0.00001", id="small"),
        pytest.param(1e-7, "1e-07", "1e-7", id="very-small"),
        pytest.param(4.0, "4", "4", id="whole"),
        pytest.param(-0.0, "-0", "-0", id="minus-zero"),
        pytest.param("<a&b>\u2028", "<a&b>\u2028", r'"\u003ca\u0026b\u003e\u2028"', id="markup"),
    ],
)
def test_go_rendering_and_json(value: object, rendered: str, json: str) -> None:
    assert go_values.rendering(value) == rendered
    assert go_values.json_text(value) == json


def test_long_value_is_shortened_in_messages() -> None:
    assert len(go_values.shown("x" * 1000)) < 300


def test_object_hash_matches_go() -> None:
    # MD5 of &{map[kind:X spec:map[replicas:1]]}
    assert go_values.object_hash({"spec": {"replicas": 1}, "kind": "X"}) == "f5c6deae4d2d5a1c7ebb1f2c69c7b987"
