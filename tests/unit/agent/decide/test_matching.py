"""Which wishes hold for which object."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.agent.decide import matching
from maestropy.wire import options, status

META = status.ResourceMeta(
    ordinal=0, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace="ns1"
)
RULES_A = (options.FeedbackRule(type=options.WELL_KNOWN_STATUS),)
RULES_B = (options.FeedbackRule(type=options.JSON_PATHS),)
READ_ONLY = options.UpdateStrategy(type=options.READ_ONLY)
COMPLETE = (options.ConditionRule(condition="Complete", type=options.CEL),)


def config(name: str = "cm1", namespace: str = "ns1", **wishes: object) -> options.ManifestConfig:
    identifier = options.ResourceIdentifier(resource="configmaps", name=name, namespace=namespace)
    return options.ManifestConfig(resource_identifier=identifier, **wishes)  # type: ignore[arg-type]  # a table


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("cm1", "cm1", True),
        ("cm1", "cm12", False),
        ("*", "", True),
        ("*", "anything", True),
        ("", "x", False),
        ("cm*", "cm1", True),
        ("cm*", "xcm1", False),
        ("*1", "cm1", True),
        ("c*1", "cm1", True),
        ("c**1", "cm1", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("ab*ba", "aba", False),
        ("x.y", "xzy", False),
        ("*.y*", "x.yz", True),
        ("*a" * 40 + "b", "a" * 200, False),
    ],
)
def test_wildcards(pattern: str, text: str, expected: bool) -> None:
    assert matching.fits(pattern, text) is expected


@given(st.lists(st.text(alphabet="ab*", max_size=4), max_size=5), st.text(alphabet="ab", max_size=6))
def test_a_pattern_fits_what_it_was_made_from(parts: list[str], filler: str) -> None:
    pattern = "*".join(parts)
    assert matching.fits(pattern, pattern.replace("*", filler))


def test_without_config_everything_is_plain() -> None:
    found = matching.treatment([], META)
    assert found == matching.Treatment()
    assert found.update_strategy.type == options.UPDATE


def test_case_42_the_first_non_empty_wish_counts_each_for_itself() -> None:
    found = matching.treatment(
        [
            config("*", "*", feedback_rules=RULES_A),
            config("cm*", "*", feedback_rules=RULES_B, update_strategy=READ_ONLY),
            config(condition_rules=COMPLETE, update_strategy=options.UpdateStrategy(type=options.CREATE_ONLY)),
        ],
        META,
    )
    assert (found.feedback_rules, found.update_strategy, found.condition_rules) == (RULES_A, READ_ONLY, COMPLETE)


def test_case_50_a_specific_config_before_a_wildcard() -> None:
    configs = [config("cm1", feedback_rules=RULES_A), config("cm*", feedback_rules=RULES_B)]
    other = status.ResourceMeta(ordinal=1, resource="configmaps", name="cm2", namespace="ns1")
    assert matching.treatment(configs, META).feedback_rules == RULES_A
    assert matching.treatment(configs, other).feedback_rules == RULES_B


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        pytest.param(options.ResourceIdentifier(resource="configmaps", name="cm1", namespace="ns1"), True, id="exact"),
        pytest.param(
            options.ResourceIdentifier(resource="*", name="cm1", namespace="ns1"), False, id="resource-is-literal"
        ),
        pytest.param(
            options.ResourceIdentifier(group="*", resource="configmaps", name="*", namespace="*"),
            False,
            id="group-is-literal",
        ),
        pytest.param(options.ResourceIdentifier(resource="configmaps", name="cm1"), False, id="namespace-must-fit"),
        pytest.param(options.ResourceIdentifier(resource="configmaps", name="*", namespace="*"), True, id="wildcards"),
    ],
)
def test_identifiers(identifier: options.ResourceIdentifier, expected: bool) -> None:
    assert matching.matches(identifier, META) is expected
