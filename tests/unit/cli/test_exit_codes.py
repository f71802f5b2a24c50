"""Which errors of other packages are mistakes in the command line."""

import pytest

from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.tooling import loading
from maestropy.cli import errors
from maestropy.sdk import selector


def test_malformed_selector_is_a_usage_error() -> None:
    with pytest.raises(selector.InvalidSelector) as raised:
        selector.parse("a b")
    assert errors.exit_code(raised.value) == errors.USAGE


def test_missing_adapter_is_a_usage_error_and_a_broken_one_is_not() -> None:
    with pytest.raises(BadAdapter) as raised:
        loading.load("nowhere/adapter.py")
    assert errors.exit_code(raised.value) == errors.USAGE
    assert errors.exit_code(BadAdapter("cannot be imported")) == errors.FAILED
