"""How `maestro check agent` marks its subscription, and how a server of this project answers it.

Such a subscription is refused as that of an agent would be, gets no specs, and leaves no trace in the history. Servers
that do not know the mark open an ordinary subscription.
"""

from typing import Final

METADATA: Final = "maestro-check"
"""The name of the metadata of the call; its value is `agent`."""
AGENT: Final = "agent"
ACCEPTED: Final = "check-accepted"
"""The ID of the subscription in the answer."""
SUBSCRIPTION_ID: Final = "subscription-id"
"""The initial metadata that carries it."""
