import pytest

from maestropy import adapter


@pytest.mark.parametrize(("old", "new"), [("Reading", "StatusReport"), ("Seen", "ObservedState"), ("Hold", "NotReady")])
def test_name_of_release_0_1_is_a_deprecated_alias(old: str, new: str) -> None:
    with pytest.warns(FutureWarning, match=f"maestropy.adapter.{old} is deprecated; use maestropy.adapter.{new}"):
        alias = getattr(adapter, old)
    assert alias is getattr(adapter, new)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Unknown'"):
        adapter.Unknown  # type: ignore[attr-defined]  # noqa: B018 - reading the attribute is the test
