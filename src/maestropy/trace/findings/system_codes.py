"""The MD codes of the catalogue: findings of `maestro diagnose` about servers, agents, broker and database. Data only.

The second digit says what they are about: 0 the archive, 1 servers, 2 agents, 3 the broker, 4 the database, 5 data
safety, 6 clocks and certificates. Thresholds are those of the alerts in `monitoring/`.
"""

from typing import Final

from maestropy.trace.exit_codes import Exit
from maestropy.trace.findings.entry import Entry

SYSTEM_CODES: Final = (
    Entry(
        code="MD-001", severity="info", title="A part of the system is unknown.",
        cause="It was not collected, or only in part, so nothing is said about it: it may be healthy or broken.",
        advice=("Get the access that the reason names, and collect again.",),
        exit=Exit.INCONCLUSIVE,
    ),
    Entry(
        code="MD-002", severity="warn", title="The archive is damaged or cut short.",
        cause="A transfer broke off, or the file was changed. What could be read is analysed; the rest is unknown.",
        advice=("Compare the size with that at the collector, and transfer the archive again.",),
        exit=Exit.INCONCLUSIVE,
    ),
    Entry(
        code="MD-003", severity="warn", title="The archive has a newer schema than this version knows.",
        cause="A newer maestropy collected it. Files that moved or changed their meaning are not read.",
        advice=("Analyse it with the version that collected it.",),
        exit=Exit.INCONCLUSIVE,
    ),
    Entry(
        code="MD-101", severity="error", title="A server is not ready.",
        cause="Its /readyz names a dependency that failed; Kubernetes sends it no requests meanwhile.",
        advice=("maestro server status --url HEALTH_URL", "maestro check server"),
    ),
    Entry(
        code="MD-102", severity="error", title="No server instance is alive.",
        cause="No instance has written a heartbeat for a minute: no server runs, or none reaches the database.",
        advice=("kubectl -n maestro get pods -l app=maestro", "maestro check server"),
    ),
    Entry(
        code="MD-103", severity="info", title="Some server instances are gone.",
        cause="They have written no heartbeat for a minute. After a roll-out that is normal; otherwise they died.",
        advice=("kubectl -n maestro get pods -l app=maestro",),
        exit=Exit.HEALTHY,
    ),
    Entry(
        code="MD-201", severity="error", title="The agent is not connected.",
        cause="Its last entry in the history is a disconnection, so no work reaches the cluster and no status returns.",
        advice=("maestro history CONSUMER --kind agent", "maestro agent status"),
    ),
    Entry(
        code="MD-202", severity="error", title="A pod of the agent is not ready.",
        cause="The container waits, crashes or fails its probe; the events of the pod name the reason.",
        advice=("kubectl -n maestro-agent describe pod -l app=maestro-agent",),
    ),
    Entry(
        code="MD-203", severity="error", title="The agent may not change a kind that its works contain.",
        cause="Its service account lacks the permission, so manifests of that kind cannot be applied or deleted.",
        advice=("kubectl auth can-i VERB KIND --as SERVICE_ACCOUNT", "Bind a role with the verb to the account."),
    ),
    Entry(
        code="MD-204", severity="error", title="Consumers with works have no connected agent.",
        cause="The servers count fewer connected agents than consumers that have works.",
        advice=("maestro history --all --kind agent --since 24h",),
    ),
    Entry(
        code="MD-301", severity="error", title="A server is not connected to the message broker.",
        cause="It reports no connection; specs and statuses wait until it is back.",
        advice=("maestro check server",),
    ),
    Entry(
        code="MD-302", severity="error", title="The message broker does not accept a connection.",
        cause="It is down, out of reach, or rejects certificate, user or password of the configuration.",
        advice=("maestro check broker --message-broker-type=mqtt --message-broker-config-file=FILE",),
    ),
    Entry(
        code="MD-303", severity="error", title="The message broker does not allow a topic.",
        cause="Its ACL rejects a subscription that servers or agents need, so statuses or specs do not arrive.",
        advice=("Allow the topic for the user in the ACL of the broker.",
                "maestro check broker --message-broker-type=mqtt --message-broker-config-file=FILE"),
    ),
    Entry(
        code="MD-304", severity="warn", title="The message broker has dropped messages.",
        cause="A client was slower than its queue is long. Resyncs bring lost specs and statuses again, later.",
        advice=("Raise max_queued_messages and max_inflight_messages of the broker, or find the slow client.",),
    ),
    Entry(
        code="MD-305", severity="warn", title="No server and no agent is connected to the message broker.",
        cause="They use another broker, or none of them runs.",
        advice=("Compare brokerHost with the configuration files of servers and agents.",),
    ),
    Entry(
        code="MD-306", severity="error", title="A topic or subscription of Pub/Sub is missing or cannot be used.",
        cause="It was deleted, detached, made for another topic, or pushes. Specs or statuses do not arrive.",
        advice=("maestro check broker --message-broker-type=pubsub --message-broker-config-file=FILE",),
    ),
    Entry(
        code="MD-307", severity="warn", title="A subscription of Pub/Sub expires.",
        cause="Pub/Sub deletes it after some days without a subscriber, with the messages that wait in it.",
        advice=("gcloud pubsub subscriptions update SUBSCRIPTION --expiration-period=never",),
    ),
    Entry(
        code="MD-308", severity="error", title="Agents have no subscription of Pub/Sub.",
        cause="Pub/Sub drops the specs of a consumer that no subscription is for.",
        advice=("Create the subscription of the consumer with its filter; docs/run-the-server.md says how.",
                "maestro check broker --consumer=CONSUMER --message-broker-type=pubsub --message-broker-config-file=F"),
    ),
    Entry(
        code="MD-401", severity="error", title="Spec events are not delivered.",
        cause="The oldest has waited for more than 15 minutes: its agent is away, or the dispatcher does not work.",
        advice=("maestro history --all --kind agent --since 24h", "maestro server status"),
    ),
    Entry(
        code="MD-402", severity="error", title="The database rejects writes or cannot be reached by a server.",
        cause="It is a standby, in recovery, or down.",
        advice=("maestro check server",),
    ),
    Entry(
        code="MD-403", severity="warn", title="The database has few connections left.",
        cause="More than nine of ten connections are used; new servers may be rejected.",
        advice=("Lower the pool size of servers, or put PgBouncer in between.",),
    ),
    Entry(
        code="MD-404", severity="warn", title="The database has invalid indexes.",
        cause="An index that was built concurrently was interrupted; searches are slow, and writes still maintain it.",
        advice=("maestro migration",),
    ),
    Entry(
        code="MD-501", severity="error", title="An agent holds works for data safety.",
        cause="The database does not have works that the agent has applied: it may be restored, empty or another one. "
        "The agent deletes nothing until a person decides.",
        advice=("maestro consumer adopt CONSUMER --dry-run", "Read docs/data-safety.md before you adopt."),
    ),
    Entry(
        code="MD-601", severity="warn", title="A clock is off.",
        cause="It differs by more than 30 s: times in logs cannot be compared, and certificates may seem invalid.",
        advice=("Check the time synchronisation of the node.",),
    ),
    Entry(
        code="MD-602", severity="error", title="A certificate has expired.",
        cause="New connections that use it fail.",
        advice=("Renew it; servers and agents read the file again by themselves.",),
    ),
    Entry(
        code="MD-603", severity="warn", title="A certificate expires within 14 days.",
        cause="It was not renewed in time.",
        advice=("Renew it; servers and agents read the file again by themselves.",),
    ),
)  # fmt: skip
