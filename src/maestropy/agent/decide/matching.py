"""Which wishes of a work hold for one of its objects?

A work lists configs, each for the objects its identifier names. Group and resource are literal; name and namespace may
hold `*` for any run of characters. Several configs may match: each kind of wish is taken from the first that has it, as
Maestro's users know it. Whether a work asks for watching does not matter: everything is watched.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from maestropy.wire import options, status

_DEFAULT_STRATEGY = options.UpdateStrategy(type=options.UPDATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """The wishes for one object."""

    feedback_rules: tuple[options.FeedbackRule, ...] = ()
    condition_rules: tuple[options.ConditionRule, ...] = ()
    update_strategy: options.UpdateStrategy = _DEFAULT_STRATEGY


def treatment(configs: Iterable[options.ManifestConfig], meta: status.ResourceMeta) -> Treatment:
    """Return the wishes of `configs` for the object that `meta` names."""
    matching = [config for config in configs if matches(config.resource_identifier, meta)]
    feedback = next((config.feedback_rules for config in matching if config.feedback_rules), ())
    conditions = next((config.condition_rules for config in matching if config.condition_rules), ())
    strategy = next((config.update_strategy for config in matching if config.update_strategy is not None), None)
    return Treatment(
        feedback_rules=feedback,
        condition_rules=conditions,
        update_strategy=strategy or _DEFAULT_STRATEGY,
    )


def matches(identifier: options.ResourceIdentifier, meta: status.ResourceMeta) -> bool:
    """Say whether a config is for this object."""
    return (
        identifier.group == meta.group
        and identifier.resource == meta.resource
        and fits(identifier.name, meta.name)
        and fits(identifier.namespace, meta.namespace)
    )


def fits(pattern: str, text: str) -> bool:
    """Say whether `text` is `pattern`, in which `*` stands for any run of characters."""
    head, star, rest = pattern.partition("*")
    if not star:
        return pattern == text
    *middle, tail = rest.split("*")
    if len(text) < len(head) + len(tail) or not (text.startswith(head) and text.endswith(tail)):
        return False
    # The leftmost place for each part leaves the most room for the next, so nothing has to be tried twice.
    position, end = len(head), len(text) - len(tail)
    for part in middle:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
