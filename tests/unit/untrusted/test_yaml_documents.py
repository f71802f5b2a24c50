import pytest
import yaml

from maestropy.untrusted import yaml_documents
from maestropy.untrusted.errors import InputRejected

LOADERS = [yaml_documents.BoundedLoader, yaml_documents.KubernetesLoader, yaml_documents.FastLoader]


@pytest.mark.parametrize("loader", LOADERS)
def test_plain_documents_are_read(loader: type[yaml_documents.BoundedLoader]) -> None:
    text = "a: &a {x: 1, y: 0.5}\nb: {<<: *a, z: [true, null]}\n---\n- 2\n"
    expected = [{"a": {"x": 1, "y": 0.5}, "b": {"x": 1, "y": 0.5, "z": [True, None]}}, [2]]
    assert yaml_documents.load_all(text, loader=loader) == expected


def test_date_is_a_string_as_in_kubernetes() -> None:
    assert yaml_documents.load("a: 2001-01-01", loader=yaml_documents.KubernetesLoader) == {"a": "2001-01-01"}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a: &a [1, 2]\n" + "b: [" + "*a, " * 60_000 + "]", "aliases", id="wide"),
        pytest.param("&a {b: *a}", "own anchor", id="cycle"),
        pytest.param("- 1\n" * (yaml_documents.VALUES + 1), "values", id="values"),
    ],
)
def test_limits_hold_for_every_loader(loader: type[yaml_documents.BoundedLoader], text: str, reason: str) -> None:
    with pytest.raises(InputRejected, match=reason):
        yaml_documents.load(text, loader=loader)


@pytest.mark.parametrize("text", ["a: 2001-99-99", "a: [", "a: !!python/object:x {}", "a: 1" + "0" * 500])
def test_text_that_is_not_yaml_is_an_error_of_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        yaml_documents.load(text)
