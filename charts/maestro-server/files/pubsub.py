"""Create the subscriptions of a server or an agent on Google Pub/Sub, and on its emulator the topics too.

Runs before the program, in its image and with its credentials and configuration. What exists already stays as it is.
Both charts have this file, because each is packaged alone; a test keeps the copies equal.
"""

import os
import sys
import time

import yaml
from google.api_core import exceptions
from google.cloud import pubsub_v1

WAIT_SECONDS = 180
PAUSE_SECONDS = 3


def main() -> None:
    """Read what the program reads, and create what it will ask for."""
    with open(os.environ["CONFIG"], encoding="utf-8") as file:
        config = yaml.safe_load(file)
    if config.get("disableTLS"):
        os.environ["PUBSUB_EMULATOR_HOST"] = config["endpoint"]
    if config.get("credentialsFile"):
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = config["credentialsFile"]
    topics = f"projects/{config['projectID']}/topics"
    if os.environ.get("WITH_TOPICS"):
        publisher = pubsub_v1.PublisherClient()
        for name in ("sourceevents", "sourcebroadcast", "agentevents", "agentbroadcast"):
            create(publisher.create_topic, {"name": f"{topics}/{name}"})
    subscriber = pubsub_v1.SubscriberClient()
    for kind, name in sorted(config["subscriptions"].items()):
        wanted = {"name": name, "topic": f"{topics}/{kind.lower()}"}
        if kind.endswith("Events"):
            # Of one topic for all, a server and an agent get what is for them.
            wanted["filter"] = os.environ["FILTER"]
        create(subscriber.create_subscription, wanted)


def create(call, wanted):
    """Create one topic or subscription; an emulator may still be starting."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            call(request=wanted, timeout=PAUSE_SECONDS)
        except exceptions.AlreadyExists:
            print("exists already:", wanted["name"], flush=True)
        except (exceptions.ServiceUnavailable, exceptions.DeadlineExceeded, exceptions.RetryError) as error:
            if time.monotonic() > deadline:
                sys.exit(f"{wanted['name']} cannot be created: {error}")
            time.sleep(PAUSE_SECONDS)
            continue
        except exceptions.GoogleAPICallError as error:
            sys.exit(f"{wanted['name']} cannot be created: {error.message}; create it yourself and set initHook off")
        else:
            print("created:", wanted["name"], flush=True)
        return


if __name__ == "__main__":
    main()
