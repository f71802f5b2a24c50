"""The practice incidents that are packaged: what an on-call person is told, and what is true.

The truth of a request is that of its situation in `situations.py`, or of `truth.json` beside recorded logs; hop and
cause are added here, from how the situation is made. Nothing here was taken from what a tool says about it. Archives
are made by `package.py`.
"""

from dataclasses import dataclass, field

from maestropy.practice import model
from tests.peers.incidents import practice_scenes, situations
from tests.peers.incidents.lab import Scene
from tests.peers.incidents.truth import FAILED, STOPPED, Truth

NAMES = {
    "homeless": "orders-cache", "forbidden": "billing-keys", "contested": "feature-flags", "never-sent": "shop-banner",
    "hooked": "checkout", "misdirected": "ledger-sync", "held": "session-store", "hang": "audit-rules",
    "killed": "quota-limits", "unpublished": "search-index", "lonely": "edge-routes", "unnotified": "price-list",
    "unheard": "tax-tables", "unhandled": "stock-levels", "left": "mail-templates", "muffled": "carrier-rates",
    "unreceived": "return-rules", "invalid": "web-frontend", "no-crd": "gateway-policy", "denied": "tenant-limits",
    "raced": "rollout-plan", "frozen": "ca-bundle", "while-away": "alert-routes", "no-broker": "geo-data",
    "ok": "dns-zones", "beside": "cron-jobs", "beside-a": "log-levels", "beside-b": "proxy-rules",
    "again": "node-labels", "same": "time-zones", "partly": "chat-widget", "executor": "report-jobs",
    "first": "seat-map", "last": "gift-cards", "after": "web-fonts", "paused": "cookie-banner",
    "adopted": "loyalty-tiers", "evil": "tenant-limits", "immutable": "ca-bundle",
    "agentkilled": "quota-limits", "apidown": "audit-rules", "tea": "gateway-policy", "nobody": "edge-routes",
    "down": "alert-routes", "cnone": "cb4-2",
    "grpc4-empty": "grpc4-c2", "mqtt2-empty": "mqtt2-c2", "grpc2-empty": "grpc2-c2", "nobody-knows-it": "eu-west-9",
}  # fmt: skip
"""Neutral names: those of the scenes and of the recorded logs say what is wrong."""
RECORDED = {"b": Scene(name="b", broker="mqtt"), "cb4": Scene(name="cb4")}
"""Logs of the Go Maestro that were recorded before there was a lab (`tests/data/trace_incidents.tar.xz`)."""
SCENES: dict[str, Scene] = {**situations.SCENES, **RECORDED, practice_scenes.SCENE.name: practice_scenes.SCENE}
ALL, LOGS = "logs, database, cluster, server", "logs"


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """One incident, before it is packaged."""

    stack: str
    scene: str
    moment: str
    work: str
    """As the scene calls it."""
    statement: str
    hops: tuple[str, ...]
    why: str
    hints: tuple[str, str]
    title: str
    runbook: int = 0
    action: str = "create"
    version: int | None = None
    nth: int = 0
    truth: Truth | None = None
    """Where no situation has it."""
    more_codes: tuple[str, ...] = ()
    """Codes of other engines that say the same, accepted too."""
    more_verdicts: tuple[str, ...] = ()
    codes: tuple[str, ...] = field(default=())
    """In place of those of the situation, where it asks for none."""
    consumer: str = ""
    """Of the work, where it is not that of the scene."""

    @property
    def name(self) -> str:
        return NAMES.get(self.work, self.work)

    def oracle(self) -> Truth:
        """Return the truth of the request."""
        return self.truth or next(
            truth
            for situation in situations.SITUATIONS
            if self.stack in situation.stacks and (situation.scene, situation.moment) == (self.scene, self.moment)
            for truth in situation.truths
            if (truth.work, truth.action, truth.version, truth.nth) == (self.work, self.action, self.version, self.nth)
        )

    def incident(self, number: int, *, resource_id: str, collected: str) -> model.Incident:
        """Return it as the package describes it."""
        truth, scene = self.oracle(), SCENES[self.scene]
        return model.Incident(
            id=f"{number:02}",
            title=self.title,
            stack=self.stack,
            broker=scene.broker,
            servers=scene.servers,
            verbosity=scene.verbosity,
            collected=collected,
            statement=self.statement,
            asked=self.name,
            hints=self.hints,
            runbook=self.runbook,
            truth=model.Truth(
                work=self.name,
                resource_id=resource_id,
                action=self.action,
                version=self.version,
                verdicts=(*truth.verdicts, *self.more_verdicts),
                stage=truth.stage,
                codes=(*(self.codes or truth.codes), *self.more_codes),
                hops=self.hops,
                why=self.why,
            ),
        )


UNDELIVERED = ("MW-003", "MD-201", "MD-204")
"""Codes of works and agents that say what MT-301 says."""

GO = (
    Packaged(
        stack="go", scene="b", moment="finalizer", work="held", action="delete", title="deletion held by a finalizer",
        statement="The work session-store was deleted, but the resource bundle stays and clean-up jobs fail. The "
        "agent of c1 works on everything else.",
        truth=Truth(work="held", action="delete", verdicts=STOPPED, stage=4, codes=("MT-411",)), hops=("cluster",),
        why="The object of the work has a finalizer that nobody removes. The agent has asked for its deletion and "
        "waits; it may only confirm when the object is gone.",
        hints=("The agent received the delete.", "What keeps a Kubernetes object with a deletionTimestamp?"),
    ),
    Packaged(
        stack="go", scene="b", moment="cut", work="held", action="delete", title="nothing is wrong any more",
        statement="An hour ago the deletion of session-store on c1 hung, and somebody worked on the cluster. Is "
        "there anything left to do?",
        truth=Truth(work="held", action="delete"), hops=(),
        why="A finalizer held the object; it was removed, the object went, the agent confirmed, and the client was "
        "told. The delete is complete, only late.",
        hints=("Ask for the newest state.", "How long did the delete take, and did it end?"),
    ),
    Packaged(
        stack="go", scene="b", moment="rejected", work="evil", title="denied by admission",
        statement="tenant-limits cannot be applied on c1. The agent's owner says that its rights are complete and "
        "shows the ClusterRole.",
        truth=Truth(work="evil", verdicts=FAILED, stage=4, codes=("MT-407",)), hops=("cluster",),
        why="An admission policy of the cluster denies the object. RBAC would allow it.",
        hints=("Forbidden has more than one author.", "Which policy is named in the answer?"),
    ),
    Packaged(
        stack="go", scene="b", moment="rejected", work="immutable", action="update", title="immutable object",
        statement="The new certificates in ca-bundle do not arrive on c1. The first version of the work is there and "
        "worked for days.",
        truth=Truth(work="immutable", action="update", verdicts=FAILED, stage=4, codes=("MT-404",)), hops=("cluster",),
        why="The ConfigMap of the first version is immutable, so the API server refuses every change of its data.",
        hints=("Version 1 was applied, version 2 was not.", "What does the API server say about the change?"),
    ),
    Packaged(
        stack="go", scene="b", moment="agentkilled", work="agentkilled", title="agent killed before it applied",
        statement="quota-limits was created for c1 and did not arrive. Shortly after, an alert said that the node of "
        "the agent ran out of memory.",
        truth=Truth(work="agentkilled", verdicts=STOPPED, stage=4, codes=("MT-417", "MT-412")), hops=("agent",),
        why="The agent has logged that it received the work, and died before it applied it. Nothing is lost on the "
        "server's side: the agent gets it by its resync when it starts again.",
        hints=("The last line of the agent is about this work.", "Which side has to act so that it arrives?"),
    ),
    Packaged(
        stack="go", scene="b", moment="apidown", work="apidown", title="API server hangs",
        statement="New works for c1 hang, audit-rules is the first that was reported. The agent's pod is running and "
        "has not restarted for minutes.",
        truth=Truth(work="apidown", verdicts=STOPPED, stage=4, codes=("MT-409", "MT-412")), hops=("cluster", "agent"),
        why="The agent received the work, and its requests to the API server get no answer.",
        hints=("Did the agent receive it?", "What does the agent wait for after it has received a work?"),
    ),
    Packaged(
        stack="go", scene="cb4", moment="down", work="tea", title="CRD missing",
        statement="gateway-policy was rolled out to five clusters. On cb4 it is not applied, on the other four it "
        "is. They were installed at different times.",
        truth=Truth(work="tea", verdicts=FAILED, stage=4, codes=("MT-405",)), hops=("cluster",),
        why="The kind of its manifest is not installed on this cluster: the CRD is missing.",
        hints=("The agent reports that it could not apply.", "Does the cluster know the kind?"),
    ),
    Packaged(
        stack="go", scene="cb4", moment="down", work="nobody", title="agent never connected", runbook=3,
        statement="A new cluster was registered as cb4-2 yesterday. Its first work, edge-routes, shows no status. The "
        "server logs no error.",
        truth=Truth(work="nobody", verdicts=STOPPED, stage=3, codes=("MT-301", "MT-306")), hops=("agent", "broker"),
        why="The consumer exists, and no agent ever connected for it.",
        hints=("The server has the work.", "Which agents have connected to this server?"),
    ),
    Packaged(
        stack="go", scene="cb4", moment="down", work="down", title="agent away",
        statement="alert-routes for cb4 waits. Other works of this consumer were applied minutes before, and the "
        "server is healthy.",
        truth=Truth(work="down", verdicts=STOPPED, stage=3, codes=("MT-301",)), more_codes=UNDELIVERED,
        hops=("agent",), why="The agent was gone before the work was created, and nobody is connected for cb4.",
        hints=("Look for the agent's connection.", "What is the last line in the agent's log?"),
    ),
    Packaged(
        stack="go", scene="cb4", moment="back", work="down", title="delivered late by a resync",
        statement="alert-routes for cb4 raised an alert, because it had no status for half a minute. The alert "
        "resolved itself before anybody looked. Explain it.",
        truth=Truth(work="down"), hops=(),
        why="The agent was away when the work was created, came back, and got it by its resync: complete, only late.",
        hints=("It ended well.", "What delivered it?"),
    ),
)  # fmt: skip
OWN = (
    Packaged(
        stack="python", scene="grpc4", moment="calm", work="homeless", title="namespace missing",
        statement="The orders team created the work orders-cache for consumer grpc4-c1 a few minutes ago. Other works "
        "of the same consumer arrived at once, this one is not on the cluster. Their manifest passed review and was "
        "applied with kubectl on the test cluster last week.",
        hops=("cluster",), why="The namespace of the manifest does not exist on the cluster, so its API server refuses "
        "the object. Everything before it worked: the agent has the work and reports the failure.",
        hints=("The agent did report a status.", "What does the API server say about the object's namespace?"),
    ),
    Packaged(
        stack="python", scene="grpc4", moment="calm", work="forbidden", title="RBAC denial",
        statement="billing-keys for grpc4-c1 never becomes available. The payments on-call says that the Secret it "
        "carries is missing on the cluster, and asks whether Maestro loses Secrets.",
        hops=("cluster",), why="The service account of the agent has no right to write Secrets: RBAC of the cluster "
        "answers Forbidden. No admission controller is involved.",
        hints=("The request reached the agent.", "Who is refused, and by what: RBAC or admission?"),
    ),
    Packaged(
        stack="python", scene="grpc4", moment="calm", work="contested", title="field owned by another manager",
        statement="Since today feature-flags on grpc4-c1 shows old values. The ConfigMap is there, but it has not the "
        "content of the work. Somebody says that a pipeline writes it too.",
        hops=("cluster",), why="The work asks for server-side apply without force, and another field manager owns the "
        "field; the API server answers with a conflict of managers, which no new attempt resolves.",
        hints=("Read the Applied condition of the work.", "Two kinds of conflict exist: versions and field managers."),
    ),
    Packaged(
        stack="python", scene="grpc4", moment="calm", work="never-sent", title="the request never reached a server",
        runbook=1,
        statement="The shop team says that their pipeline created the work shop-banner for grpc4-c1 an hour ago and "
        "went green. Nothing is on the cluster. Where did Maestro lose it?",
        truth=Truth(work="never-sent", verdicts=("not found", "failed", "incomplete"), stage=1, codes=("MT-101",)),
        more_codes=("MW-010",), hops=("source", "server"),
        why="No server received the request: there is no line, no row and no event about it, while the requests of "
        "others before and after it are there. The client has to say what its publish call returned.",
        hints=("Look for any trace of the name.", "The logs cover the time in question; what does silence prove?"),
    ),
    Packaged(
        stack="python", scene="grpc4", moment="calm", work="misdirected", title="unknown consumer",
        statement="ledger-sync is meant for the new region eu-west-9. The client's publish call fails. Agents of "
        "other regions are healthy, so the network team was called.",
        hops=("server", "source"), why="The consumer eu-west-9 was never created. The server refuses the request and "
        "stores nothing, so no agent could ever get it.",
        hints=("Did the server store it?", "List the consumers that exist."),
    ),
    Packaged(
        stack="python", scene="grpc4", moment="calm", work="executor", title="executor not allowed",
        statement="report-jobs is the first work of the reporting team on grpc4-c1, and it is not applied. Works of "
        "other teams with the same kinds of objects are.",
        hops=("cluster", "agent"),
        why="The work names an executor, a service account that may not write the object. The rights "
        "of the agent itself would suffice.",
        hints=("The agent refuses it before the API server could.", "On whose behalf is the work applied?"),
    ),
    Packaged(
        stack="python", scene="grpc4", moment="agent-away", work="while-away", title="agent stopped",
        statement="alert-routes for grpc4-c1 waits since some minutes. The server is healthy and other clusters get "
        "their works.",
        more_codes=UNDELIVERED, hops=("agent",),
        why="The agent of the consumer was shut down before the work was created, and nobody is connected.",
        hints=("Look for the agent's connection.", "What is the last line in the agent's log?"),
    ),
    Packaged(
        stack="python", scene="grpc4", moment="server-killed", work="unpublished",
        title="server killed between commit and publish", runbook=2,
        statement="The client got a success for search-index, but neither the agent nor the cluster of grpc4-c1 "
        "knows it. At about the same time a server pod was evicted.",
        more_codes=("MW-003", "MD-102"), hops=("server",),
        why="The request is committed in the database, and its server was killed before it published it. The spec "
        "event waits until a server starts.",
        hints=("Is there a row, and is its spec event reconciled?", "What is the last thing that the server logged?"),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="calm", work="lonely", title="MQTT without an agent",
        consumer="mqtt2-empty",
        statement="A new cluster was registered as mqtt2-c2 yesterday. Its first work, edge-routes, shows no status. "
        "The server logs no error.",
        more_codes=UNDELIVERED, hops=("agent", "broker"),
        why="The consumer exists, and no agent subscribes to its topic: the broker has nobody to deliver to.",
        hints=("The server did publish.", "Whose log would show that it was received?"),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="calm", work="invalid", title="invalid manifest at -v=2", runbook=4,
        statement="web-frontend does not start on mqtt2-c1. The logs are of the default verbosity, which is all that "
        "there is.",
        hops=("cluster",), why="A Deployment without a selector: the API server refuses it as invalid.",
        hints=("Low verbosity hides stages, not errors.", "Read the agent's error about the work."),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="status-refused", work="unhandled", runbook=7,
        title="status handling fails",
        statement="stock-levels is on the cluster with the right content, but Maestro shows no status for it. The "
        "agent says that it has reported. Disk alerts of the database were silenced last week.",
        more_codes=("MW-105", "MD-402"), hops=("database", "server", "status"),
        why="The server received the status update, and the database refused to store it: no space left on device.",
        hints=("The status left the cluster.", "What does the server log when it handles the status?"),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="client-left", work="left", runbook=9,
        title="client left before the status",
        statement="A job created mail-templates for mqtt2-c1 and failed with a time-out, because it saw no status. "
        "Its owner asks why Maestro does not answer.",
        hops=("subscribers", "source"),
        why="The work was applied and its status stored, but no client of this source was connected when the status "
        "came: the job had ended before. Nothing in Maestro is broken.",
        hints=("Is the status in the database?", "Who was subscribed when the status came?"),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="status-unnotified", work="unheard", runbook=8,
        title="notification of a status lost, found by polling",
        statement="The database dropped notifications for some minutes. The runbook says that the server then does "
        "not broadcast statuses (its error 8). The owner of tax-tables on mqtt2-c1 asks whether that hit them.",
        hops=(), why="The notification about the status was lost, but this server looks for such statuses by itself, "
        "and broadcast it: the request is complete.",
        hints=("Follow the status from the agent to the subscribers.", "Is stage 8 there, and stage 9?"),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="broker-down", work="no-broker", title="MQTT broker down",
        statement="Since a few minutes nothing moves on mqtt2-c1: geo-data was accepted and stays without a status. "
        "The database is healthy.",
        more_codes=("MD-301", "MD-302", "MW-003"), hops=("broker",),
        why="The MQTT broker is down. The server stored the work and cannot publish it.",
        hints=("The work is stored.", "Is everyone connected to what carries messages?"),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="agent-unheard", work="muffled", title="agent cannot publish the status",
        runbook=5,
        statement="carrier-rates is on the cluster of mqtt2-c1, but no status came back. Server's and agent's "
        "pods are running.",
        more_codes=("MW-105", "MW-003", "MD-301"), hops=("broker", "agent", "status"),
        why="The broker went down while the agent applied the work, so that the agent could not publish its status.",
        hints=("The object is there: the way down worked.", "What does the agent need to report?"),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="agent-heard", work="muffled", title="nothing is wrong any more",
        statement="An alert says that carrier-rates on mqtt2-c1 had no status for longer than its limit. It was "
        "raised during a short outage of the broker. What has to be done?",
        hops=(), why="The broker was down while the agent applied the work. It came back, the agent reported, and the "
        "status is stored: nothing is left to do.",
        hints=("Ask for the state of now, not of then.", "Errors that were overcome are history."),
    ),
    Packaged(
        stack="python", scene="mqtt2", moment="server-gone", work="unreceived", runbook=6,
        title="server killed before the status came",
        statement="return-rules is applied, and the agent of mqtt2-c1 logs that it sent the status. The REST API "
        "does not answer.",
        more_codes=("MW-105", "MW-003", "MD-102"), hops=("server", "status"),
        why="The agent published its status after the server had been killed: no server was there to receive it. It "
        "asks for the statuses when it starts again.",
        hints=("Compare the agent's last lines with the server's.", "Who subscribes to the agents' statuses?"),
    ),
    Packaged(
        stack="python", scene="grpc10x2", moment="servers-only", work="invalid",
        title="failed apply, agent's log missing",
        statement="web-frontend is not applied on grpc10x2-c1. The team of the cluster does not hand out logs of the "
        "agent; you get those of both servers.",
        codes=("MT-404", "MT-499", "MW-005"), hops=("cluster",),
        why="The agent's status says that the API server refused the Deployment, which has no selector. The servers' "
        "logs at -v=10 carry that status.",
        hints=("A status travels through the servers.", "Which condition does the status carry?"),
    ),
    Packaged(
        stack="python", scene=practice_scenes.SCENE.name, moment="paused", work="paused", title="consumer paused",
        statement="cookie-banner should have been on guarded-c1 this morning. The request was acknowledged, the "
        "agent is connected, no error is logged anywhere.",
        truth=practice_scenes.PAUSED, hops=("broker", "server"),
        why="An operator paused the delivery to this consumer for a node upgrade and did not resume it. What sources "
        "request is stored and waits.",
        hints=("Nothing failed: somebody decided.", "Ask for pauses, or read the consumer's history."),
    ),
    Packaged(
        stack="python", scene=practice_scenes.SCENE.name, moment="held", work="adopted", title="data-safety hold",
        statement="After last night's move of the database, the REST API does not know loyalty-tiers any more. On "
        "guarded-c1 it still runs, although Maestro removes what it does not know. Why, and is it safe?",
        truth=practice_scenes.HELD, hops=("agent", "database"),
        why="The server runs on another database, which does not have the work. The agent notices that and holds all "
        "works instead of deleting them, until somebody adopts the database or brings the right one back.",
        hints=("What does the agent say about its server's database?", "Data safety has a finding of its own."),
    ),
)  # fmt: skip
INCIDENTS = (*GO, *OWN)
