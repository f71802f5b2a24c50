"""Find the `manifestConfigs` of a work that apply to one object.

Group and resource of an identifier are literal; name and namespace may contain `*` for any run of characters. If
several configs match, feedback rules, condition rules and update strategy are each taken from the first that has them,
as in Maestro. `feedbackScrapeType` is ignored: everything is watched.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from maestropy.wire.works import options, status

EXPRESSIONS_PER_CONFIG = 500
EXPRESSIONS_PER_WORK = 5_000
"""CEL expressions, JSONPaths, JSON pointers and jq expressions in all manifestConfigs of a work."""
EVALUATIONS_PER_WORK = 10_000
"""The same, counted once for every manifest that a config selects."""
MATCHES_PER_WORK = 50_000
"""Comparisons of manifests with wildcards, each about a microsecond."""

_DEFAULT_STRATEGY = options.UpdateStrategy(type=options.UPDATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfig:
    """The feedback rules, condition rules and update strategy of one object."""

    feedback_rules: tuple[options.FeedbackRule, ...] = ()
    condition_rules: tuple[options.ConditionRule, ...] = ()
    update_strategy: options.UpdateStrategy = _DEFAULT_STRATEGY


def problem(configs: Sequence[options.ManifestConfig], *, manifests: int) -> str:
    """Return which limit the configs of a work with so many manifests exceed; empty if none."""
    counts = [expression_count(config) for config in configs]
    if max(counts, default=0) > EXPRESSIONS_PER_CONFIG:
        return f"a manifestConfig has {max(counts)} expressions, more than the {EXPRESSIONS_PER_CONFIG} allowed"
    if sum(counts) > EXPRESSIONS_PER_WORK:
        return (
            f"the manifestConfigs have {sum(counts)} expressions, more than the {EXPRESSIONS_PER_WORK} allowed: "
            "split the work"
        )
    wildcards = sum(_has_wildcard(config.resource_identifier) for config in configs)
    if wildcards * manifests > MATCHES_PER_WORK:
        return (
            f"{manifests} manifests times {wildcards} manifestConfigs with * are more than the {MATCHES_PER_WORK} "
            "allowed: split the work, or name the objects"
        )
    return ""


def evaluations_problem(effective: Iterable[EffectiveConfig]) -> str:
    """Return that the manifests of a work have too many expressions together; empty if they have not."""
    count = sum(map(expression_count, effective))
    if count <= EVALUATIONS_PER_WORK:
        return ""
    return f"the manifests have {count} expressions, more than the {EVALUATIONS_PER_WORK} allowed: split the work"


def expression_count(config: options.ManifestConfig | EffectiveConfig) -> int:
    """Return how many expressions a config has; a rule without any counts as one."""
    ignored = config.update_strategy.ignore_fields if config.update_strategy is not None else ()
    return (
        sum(max(1, len(rule.cel_expressions) + bool(rule.message_expression)) for rule in config.condition_rules)
        + sum(max(1, len(rule.json_paths)) for rule in config.feedback_rules)
        + sum(len(entry.json_paths) + len(entry.json_pointers) + len(entry.jq_path_expressions) for entry in ignored)
    )


class ConfigIndex:
    """The configs of one work; those without a wildcard are found by the object they name."""

    def __init__(self, configs: Iterable[options.ManifestConfig]) -> None:
        self._named: dict[options.ResourceIdentifier, list[tuple[int, options.ManifestConfig]]] = {}
        self._wildcards: list[tuple[int, options.ManifestConfig]] = []
        for index, config in enumerate(configs):
            identifier = config.resource_identifier
            if _has_wildcard(identifier):
                self._wildcards.append((index, config))
            else:
                self._named.setdefault(identifier, []).append((index, config))

    def effective(self, meta: status.ResourceMeta) -> EffectiveConfig:
        """Return the effective config of the object that `meta` names."""
        identifier = options.ResourceIdentifier(
            group=meta.group, resource=meta.resource, name=meta.name, namespace=meta.namespace
        )
        matching = [entry for entry in self._wildcards if matches(entry[1].resource_identifier, meta)]
        matching += self._named.get(identifier, ())
        matching.sort(key=lambda entry: entry[0])
        return _merged([config for _, config in matching])


def _has_wildcard(identifier: options.ResourceIdentifier) -> bool:
    return "*" in identifier.name or "*" in identifier.namespace


def _merged(matching: Sequence[options.ManifestConfig]) -> EffectiveConfig:
    feedback = next((config.feedback_rules for config in matching if config.feedback_rules), ())
    conditions = next((config.condition_rules for config in matching if config.condition_rules), ())
    strategy = next((config.update_strategy for config in matching if config.update_strategy is not None), None)
    return EffectiveConfig(
        feedback_rules=feedback,
        condition_rules=conditions,
        update_strategy=strategy or _DEFAULT_STRATEGY,
    )


def matches(identifier: options.ResourceIdentifier, meta: status.ResourceMeta) -> bool:
    """Return whether an identifier matches this object."""
    return (
        identifier.group == meta.group
        and identifier.resource == meta.resource
        and matches_pattern(identifier.name, meta.name)
        and matches_pattern(identifier.namespace, meta.namespace)
    )


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether `text` matches `pattern`, in which `*` stands for any run of characters."""
    head, star, rest = pattern.partition("*")
    if not star:
        return pattern == text
    *middle, tail = rest.split("*")
    if len(text) < len(head) + len(tail) or not (text.startswith(head) and text.endswith(tail)):
        return False
    # The leftmost match of each part leaves the most room for the next, so no backtracking is needed.
    position, end = len(head), len(text) - len(tail)
    for part in middle:
        index = text.find(part, position, end)
        if index < 0:
            return False
        position = index + len(part)
    return True
