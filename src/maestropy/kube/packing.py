"""Objects of the cluster that are kept for long are kept as bytes.

Which version one is stays readable without unpacking, because that is asked much more often than what is in it.
"""

from typing import NamedTuple

from maestropy.kube import freshness
from maestropy.kube.objects import Json
from maestropy.kube.roster import Sighting
from maestropy.wire import packing


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
