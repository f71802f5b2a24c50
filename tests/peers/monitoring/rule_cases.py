"""When each alert fires and when it does not, as series over minutes: thresholds and durations as they are shipped."""

from typing import NamedTuple

DAY = 86400


class Case(NamedTuple):
    """Series, one value a minute, and the minutes at which the alert fires and does not."""

    series: dict[str, str]
    fires_at: tuple[int, ...] = ()
    quiet_at: tuple[int, ...] = ()


NS = 'namespace="maestro"'
A = f'instance="a",{NS}'
OLDEST = f"spec_controller_event_oldest_unreconciled_age_seconds{{{A}}}"
SUCCESS = f'spec_controller_event_reconcile_total{{event_type="Create",status="success",{A}}}'
ERROR = f'spec_controller_event_reconcile_total{{event_type="unknown",status="error",{A}}}'
EXPIRY = f'maestropy_certificate_expiry_timestamp_seconds{{certificate="grpc-tls-cert-file",{A}}}'
DELIVERABLE = f'maestropy_deliverable_event_oldest_age_seconds{{broker="grpc",{A}}}'
CONNECTED = f'maestropy_consumers_with_works_connected{{broker="grpc",{A}}}'
UP = f"maestropy_database_up{{{A}}}"
OTHER = 'instance="b",namespace="elsewhere"'

CASES: dict[str, list[Case]] = {
    "MaestroNothingDelivered": [
        # The first minutes are below the threshold of the age, then five minutes have to pass.
        Case({OLDEST: "0+60x60", SUCCESS: "5+0x60"}, fires_at=(12, 60), quiet_at=(5, 10)),
        Case({OLDEST: "0+60x60"}, fires_at=(12,), quiet_at=(10,)),
        Case({OLDEST: "0+60x60", SUCCESS: "0+3x60"}, quiet_at=(12, 60)),
        # One agent is away in a fleet where nothing else changes: the specs of those that are connected do not wait.
        Case({OLDEST: "0+60x60", CONNECTED: "4+0x60", DELIVERABLE: "0+0x60"}, quiet_at=(12, 60)),
        Case({OLDEST: "0+60x60", CONNECTED: "4+0x60", DELIVERABLE: "0+60x60"}, fires_at=(12, 60), quiet_at=(10,)),
        Case({OLDEST: "0+60x60", CONNECTED: "0+0x60", DELIVERABLE: "0+0x60"}, fires_at=(12, 60)),
        # Another installation delivers: it does not count for this one.
        Case(
            {OLDEST: "0+60x60", f'spec_controller_event_reconcile_total{{status="success",{OTHER}}}': "0+9x60"},
            fires_at=(12,),
        ),
    ],
    "MaestroSpecNotDelivered": [
        Case({OLDEST: "0+60x60", SUCCESS: "0+3x60"}, fires_at=(27,), quiet_at=(15, 24)),
        Case({OLDEST: "600+0x60"}, quiet_at=(60,)),
    ],
    "MaestroAgentsAway": [
        Case(
            {
                f"maestropy_consumers_with_works{{{A}}}": "5+0x60",
                f'maestropy_consumers_with_works{{instance="b",{NS}}}': "5+0x60",
                f'maestropy_consumers_with_works_connected{{broker="grpc",{A}}}': "2+0x60",
                f'maestropy_consumers_with_works_connected{{broker="grpc",instance="b",{NS}}}': "2+0x60",
            },
            fires_at=(16, 60),
            quiet_at=(14,),
        ),
        Case(
            {
                f"maestropy_consumers_with_works{{{A}}}": "5+0x60",
                f'maestropy_consumers_with_works_connected{{broker="grpc",{A}}}': "5+0x60",
            },
            quiet_at=(60,),
        ),
        # The series of connected agents has ended.
        Case(
            {
                f"maestropy_consumers_with_works{{{A}}}": "5+0x120",
                f'maestropy_consumers_with_works_connected{{broker="grpc",{A}}}': "5+0x30 stale",
            },
            fires_at=(60,),
            quiet_at=(30, 40),
        ),
        # Behind a message broker the server does not know its agents.
        Case({f"maestropy_consumers_with_works{{{A}}}": "5+0x60"}, quiet_at=(60,)),
    ],
    "MaestroDeletionsStuck": [
        Case(
            {f'delete_recovery_tombstone_oldest_age_seconds{{state="delayed",{A}}}': "0+60x120"},
            fires_at=(72,),
            quiet_at=(59, 68),
        ),
    ],
    "MaestroReconcileErrors": [
        Case({ERROR: "0+2x60", SUCCESS: "0+8x60"}, fires_at=(15,), quiet_at=(5,)),
        Case({ERROR: "0+1x60", SUCCESS: "0+20x60"}, quiet_at=(60,)),
    ],
    "MaestroWorksWithoutStatus": [
        Case(
            {f"spec_controller_undelivered_resources_republished_total{{{A}}}": "0x5 1+0x9 2+0x9 3+0x9 4+0x60"},
            fires_at=(40,),
            quiet_at=(4, 30, 110),
        ),
    ],
    "MaestroStatusesNotSent": [
        Case({f"maestropy_status_event_oldest_age_seconds{{{A}}}": "0+60x60"}, fires_at=(12,), quiet_at=(5, 9)),
        Case({f"maestropy_status_event_oldest_age_seconds{{{A}}}": "2+0x60"}, quiet_at=(60,)),
    ],
    "MaestroStatusesNotReported": [
        Case({f"maestropy_agent_oldest_status_waiting_seconds{{{A}}}": "0+60x60"}, fires_at=(12,), quiet_at=(5, 9)),
        Case({f"maestropy_agent_oldest_status_waiting_seconds{{{A}}}": "0+0x60"}, quiet_at=(60,)),
    ],
    "MaestroAgentDisconnected": [
        Case(
            {f"maestropy_agent_connected{{{A}}}": "0+0x60", f"maestropy_agent_leading{{{A}}}": "1+0x60"},
            fires_at=(11,),
            quiet_at=(9,),
        ),
        # A replica that waits for leadership is not connected, and that is right.
        Case(
            {f"maestropy_agent_connected{{{A}}}": "0+0x60", f"maestropy_agent_leading{{{A}}}": "0+0x60"}, quiet_at=(60,)
        ),
    ],
    "MaestroDatabaseDown": [
        Case({f"maestropy_database_up{{{A}}}": "1x5 0+0x60"}, fires_at=(8,), quiet_at=(5,)),
    ],
    "MaestroDatabaseReadOnly": [
        Case({f"maestropy_database_read_only{{{A}}}": "0x5 1+0x60"}, fires_at=(8,), quiet_at=(5,)),
    ],
    "MaestroDatabaseSlow": [
        Case(
            {
                f"maestropy_database_check_duration_seconds_sum{{{A}}}": "0+10x60",
                f"maestropy_database_check_duration_seconds_count{{{A}}}": "0+20x60",
            },
            fires_at=(15,),
            quiet_at=(5,),
        ),
        Case(
            {
                f"maestropy_database_check_duration_seconds_sum{{{A}}}": "0+0.2x60",
                f"maestropy_database_check_duration_seconds_count{{{A}}}": "0+20x60",
            },
            quiet_at=(60,),
        ),
    ],
    "MaestroNotificationQueueFilling": [
        Case({f"postgres_notification_queue_usage{{{A}}}": "0+0.05x19"}, fires_at=(17,), quiet_at=(10, 14)),
    ],
    "MaestroBrokerDisconnected": [
        Case({f'maestropy_broker_connected{{broker="mqtt",{A}}}': "1x5 0+0x60"}, fires_at=(9,), quiet_at=(5, 7)),
    ],
    "MaestroCertificateExpiresSoon": [
        Case({EXPIRY: f"{10 * DAY}+0x200"}, fires_at=(61,), quiet_at=(59,)),
        Case({EXPIRY: f"{20 * DAY}+0x200"}, quiet_at=(200,)),
        Case({EXPIRY: "0+0x200"}, quiet_at=(200,)),
    ],
    "MaestroCertificateExpired": [
        Case({EXPIRY: "0+0x60"}, fires_at=(3,)),
        Case({EXPIRY: f"{DAY}+0x60"}, quiet_at=(60,)),
    ],
    "MaestroClockSkew": [
        Case({f'maestropy_clock_skew_seconds{{reference="database",{A}}}': "-45+0x60"}, fires_at=(11,), quiet_at=(9,)),
        Case({f'maestropy_clock_skew_seconds{{reference="api-server",{A}}}': "3+0x60"}, quiet_at=(60,)),
    ],
    "MaestroWorksHeld": [
        Case({f"maestropy_held_works{{{A}}}": "3+0x60"}, fires_at=(6,), quiet_at=(4,)),
        Case({f'maestropy_agent_held_works{{reason="OtherDatabase",{A}}}': "3+0x60"}, fires_at=(6,)),
        Case({f"maestropy_held_works{{{A}}}": "0+0x60"}, quiet_at=(60,)),
        Case({f'maestropy_agent_held_works{{reason="EvictionPending",{A}}}': "3+0x60"}, quiet_at=(60,)),
    ],
    "MaestroEvictionPending": [
        Case({f"maestropy_pending_evictions{{{A}}}": "0x5 3+0x60"}, fires_at=(8,), quiet_at=(5,)),
        Case({f'maestropy_agent_held_works{{reason="EvictionPending",{A}}}': "3+0x60"}, fires_at=(2,)),
        Case({f'maestropy_agent_held_works{{reason="OtherDatabase",{A}}}': "3+0x60"}, quiet_at=(60,)),
    ],
    "MaestroServersGone": [
        # For a week after the last sample: an outage over a long weekend does not resolve by itself.
        Case({UP: "1+0x30 stale"}, fires_at=(60, 420, 10100), quiet_at=(30, 34, 10120)),
        Case({UP: "1+0x30 _x600 1+0x10"}, fires_at=(600,), quiet_at=(635,)),
        # One of two is there, also one without its database.
        Case({UP: "1+0x30 stale", f'maestropy_database_up{{instance="b",{NS}}}': "0+0x60"}, quiet_at=(60,)),
        # Another installation is there.
        Case({UP: "1+0x30 stale", f"maestropy_database_up{{{OTHER}}}": "1+0x60"}, fires_at=(60,)),
        Case({f'up{{job="maestro-server",{A}}}': "0+0x60"}, quiet_at=(60,)),
    ],
    "MaestroNotScraped": [
        Case({'up{job="maestro-server",instance="a"}': "1x5 0+0x60"}, fires_at=(12,), quiet_at=(5, 9)),
        Case({'up{job="node",instance="a"}': "0+0x60"}, quiet_at=(60,)),
    ],
}
