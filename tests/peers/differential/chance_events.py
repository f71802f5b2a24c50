"""Lives of bundles made by chance, from a seed: in each, any request may have any attribute changed."""

import functools
import random

from maestropy.wire._pb import cloudevents_pb2 as pb
from tests.peers.differential import twin_events as make
from tests.peers.differential.event_cases import Step, Stories, again, create, delete, spec_request, update, word
from tests.peers.differential.spoiled_values import NAMES, VALUES, with_attribute


def by_chance(seed: int, count: int) -> Stories:
    """Yield lives in which any request may have any attribute changed."""
    for count_ in range(count):
        yield f"chance {count_}", functools.partial(lambda s, r: _life(random.Random(s), r), seed + count_)


def _life(chance: random.Random, resource: str) -> list[Step]:
    steps = [spec_request(_changed(chance, create(resource), often=0.2))]
    for count in range(chance.randint(1, 3)):
        what = chance.choice(["update", "status", "status", "delete", "create"])
        if what == "update":
            made = update(resource, chance.choice([0, 1, 1, 2, 9]), value=f"v{count}")
            steps.append(spec_request(_changed(chance, made, often=0.4)))
        elif what == "status":
            sequence = str((make.SECOND + chance.randint(0, 9)) << 22)
            kinds = chance.choice([("Applied",), ("Applied", "Available"), ("Applied",)])
            made = make.status(resource, version=chance.choice([1, 1, 2]), sequence=sequence, kinds=kinds)
            steps.append(word(_changed(chance, made, often=0.4)))
        elif what == "delete":
            steps.append(
                spec_request(_changed(chance, delete(resource, ident=f"delete-{resource}-{count}"), often=0.3))
            )
        else:
            steps.append(
                spec_request(_changed(chance, again(create(resource), f"create-{resource}-{count}"), often=0.3))
            )
    return steps


def _changed(chance: random.Random, made: pb.CloudEvent, *, often: float) -> pb.CloudEvent:
    if chance.random() < often:
        for _ in range(chance.randint(1, 2)):
            with_attribute(made, chance.choice(NAMES), VALUES[chance.choice(sorted(VALUES))])
    return made
