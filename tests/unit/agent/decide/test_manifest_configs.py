"""The manifest configs that match an object."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.agent.decide import manifest_configs
from maestropy.wire.works import options, status

META = status.ResourceMeta(
    ordinal=0, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace="ns1"
)
RULES_A = (options.FeedbackRule(type=options.WELL_KNOWN_STATUS),)
RULES_B = (options.FeedbackRule(type=options.JSON_PATHS),)
READ_ONLY = options.UpdateStrategy(type=options.READ_ONLY)
COMPLETE = (options.ConditionRule(condition="Complete", type=options.CEL),)


def config(name: str = "cm1", namespace: str = "ns1", **config_options: object) -> options.ManifestConfig:
    identifier = options.ResourceIdentifier(resource="configmaps", name=name, namespace=namespace)
    return options.ManifestConfig(resource_identifier=identifier, **config_options)  # type: ignore[arg-type]  # a table


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
def test_wildcard_match(pattern: str, text: str, expected: bool) -> None:
    assert manifest_configs.matches_pattern(pattern, text) is expected


@given(st.lists(st.text(alphabet="ab*", max_size=4), max_size=5), st.text(alphabet="ab", max_size=6))
def test_pattern_matches_text_built_from_its_parts(parts: list[str], filler: str) -> None:
    pattern = "*".join(parts)
    assert manifest_configs.matches_pattern(pattern, pattern.replace("*", filler))


def test_no_config_gives_defaults() -> None:
    effective = manifest_configs.ConfigIndex([]).effective(META)
    assert effective == manifest_configs.EffectiveConfig()
    assert effective.update_strategy.type == options.UPDATE


def test_first_config_with_each_option_wins() -> None:
    effective = manifest_configs.ConfigIndex(
        [
            config("*", "*", feedback_rules=RULES_A),
            config("cm*", "*", feedback_rules=RULES_B, update_strategy=READ_ONLY),
            config(condition_rules=COMPLETE, update_strategy=options.UpdateStrategy(type=options.CREATE_ONLY)),
        ]
    ).effective(META)
    assert (effective.feedback_rules, effective.update_strategy, effective.condition_rules) == (
        RULES_A,
        READ_ONLY,
        COMPLETE,
    )


def test_specific_config_before_wildcard_wins() -> None:
    configs = [config("cm1", feedback_rules=RULES_A), config("cm*", feedback_rules=RULES_B)]
    other = status.ResourceMeta(ordinal=1, resource="configmaps", name="cm2", namespace="ns1")
    assert manifest_configs.ConfigIndex(configs).effective(META).feedback_rules == RULES_A
    assert manifest_configs.ConfigIndex(configs).effective(other).feedback_rules == RULES_B


def expressions(count: int) -> tuple[options.ConditionRule, ...]:
    return (options.ConditionRule(condition="A", type=options.CEL, cel_expressions=("true",) * count),)


@pytest.mark.parametrize(
    ("configs", "manifests", "expected"),
    [
        pytest.param([config(condition_rules=expressions(500))] * 10, 1000, "", id="at-the-limits"),
        pytest.param([config(condition_rules=expressions(501))], 1, "501 expressions, more than the 500", id="config"),
        pytest.param([config(condition_rules=expressions(400))] * 13, 1, "5200 expressions, more than", id="work"),
        pytest.param([config("a*")] * 300, 300, "300 manifests times 300 manifestConfigs with *", id="wildcards"),
    ],
)
def test_limits_of_configs(configs: list[options.ManifestConfig], manifests: int, expected: str) -> None:
    problem = manifest_configs.problem(configs, manifests=manifests)
    assert expected in problem
    assert bool(expected) is bool(problem)


def test_limit_counts_expressions_of_every_manifest() -> None:
    effective = manifest_configs.ConfigIndex([config(condition_rules=expressions(100))]).effective(META)
    assert manifest_configs.evaluations_problem([effective] * 100) == ""
    assert "10100 expressions" in manifest_configs.evaluations_problem([effective] * 101)


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
        pytest.param(options.ResourceIdentifier(resource="configmaps", name="cm1"), False, id="namespace-mismatch"),
        pytest.param(options.ResourceIdentifier(resource="configmaps", name="*", namespace="*"), True, id="wildcards"),
    ],
)
def test_resource_identifier_match(identifier: options.ResourceIdentifier, expected: bool) -> None:
    assert manifest_configs.matches(identifier, META) is expected
