"""Objects of the cluster that are kept for long are kept as bytes.

Which version one is stays readable without unpacking, because that is asked much more often than what is in it.
"""

from typing import NamedTuple

from pymaestro.kube import freshness
from pymaestro.kube.objects import Json
from pymaestro.kube.roster import Sighting
from pymaestro.wire import packing


class Packed(NamedTuple):
    """One object."""

    sighting: Sighting
    body: bytes

    def unpack(self) -> Json:
        """Return the object; whoever gets it owns it."""
        return packing.unpack(self.body)


def pack(found: Json) -> Packed:
    """Keep an object."""
    return Packed(freshness.sighting(found), packing.pack(found))
