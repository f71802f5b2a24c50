"""What the metrics show after a bundle went through the server: the series that dashboards ask for have values."""

from datetime import timedelta

from maestropy.store import statuses
from maestropy.store.dsn import Dsn
from tests import waiting
from tests.stack import harness
from tests.stack.clients import agent, bundle_data, source

COUNTED = (
    "rest_api_inbound_request_count",
    "grpc_server_called_total",
    "grpc_server_message_received_total",
    "grpc_server_message_sent_total",
    "grpc_server_processed_total",
    "grpc_server_processed_duration_seconds_count",
    "grpc_server_registered_source_clients",
    "resource_processed_total",
    "resource_first_status_latency_seconds_count",
    "resource_status_event_processing_latency_seconds_count",
    "advisory_lock_count",
    "advisory_unlock_count",
    "advisory_lock_duration_count",
    "spec_controller_event_reconcile_total",
    "spec_controller_event_reconcile_duration_seconds_count",
    "spec_controller_event_sync_operation_total",
    "status_controller_event_reconcile_total",
    "status_controller_event_reconcile_duration_seconds_count",
    "status_controller_event_sync_operation_total",
    "resources_spec_resync_duration_seconds_count",
)
QUEUES = ("event-controller", "status-event-controller")
QUEUED = (
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds_count",
    "workqueue_work_duration_seconds_count",
)


async def test_every_series_that_dashboards_ask_for_has_a_value(database: Dsn) -> None:
    async with harness.in_process(database, sweep_interval="100ms") as server:
        await server.add_consumer("cluster1")
        async with (
            source(server.sources) as a,
            agent(server.agents, "cluster1") as one,
            a.subscribe() as told,
            one.subscribe() as got,
        ):
            await one.resync({})
            await a.create("w1", "cluster1", data=bundle_data("first"))
            await got.spec_of("w1", version=1)
            await one.tell("w1", 1)
            await told.spec_of("w1")
            await a.update("w1", "cluster1", version=1, data=bundle_data("second"))
            await got.spec_of("w1", version=2)

            def lacking() -> list[str]:
                text = server.context.metrics.render()[0].decode()
                lines = [line for line in text.splitlines() if line[0] != "#" and not line.endswith(" 0.0")]
                found = {line.partition("{")[0].partition(" ")[0] for line in lines}
                queued = {line.partition("}")[0] for line in lines}
                wanted = [f'{name}{{queue_name="{queue}"' for name in QUEUED for queue in QUEUES]
                return [*(set(COUNTED) - found), *(set(wanted) - queued)]

            await waiting.until(lambda: not lacking(), what=f"values of {lacking()}")
            text = server.context.metrics.render()[0].decode()
            counted = ("grpc_server_called_total{", "maestropy_grpc_broker_called_total{", "resource_processed_total{")
            calls = [line for line in text.splitlines() if line.startswith(counted)]
            assert set(calls) == {
                'grpc_server_called_total{source="source-a",type="Subscribe"} 1',
                'grpc_server_called_total{source="source-a",type="Publish"} 2',
                # The agent's, which the Go server does not count.
                'maestropy_grpc_broker_called_total{type="Subscribe"} 1',
                'maestropy_grpc_broker_called_total{type="Publish"} 2',
                # One update of the spec and one status.
                'resource_processed_total{action="update",id=""} 2',
            }


async def test_status_event_without_a_subscribed_source_counts(database: Dsn) -> None:
    async with harness.in_process(database, sweep_interval="100ms") as server:
        await server.add_consumer("cluster1")
        async with source(server.sources) as a, agent(server.agents, "cluster1") as one, one.subscribe() as got:
            await one.resync({})
            await a.create("w1", "cluster1", data=bundle_data("first"))
            await got.spec_of("w1", version=1)
            await one.tell("w1", 1)
            wanted = {
                'status_controller_event_reconcile_total{event_type="StatusUpdate",status="success"} 1',
                'status_controller_event_reconcile_duration_seconds_count{event_type="StatusUpdate"} 1',
            }
            latency = "resource_status_event_processing_latency_seconds_count{"

            def is_counted() -> bool:
                lines = server.context.metrics.render()[0].decode().splitlines()
                return wanted <= set(lines) and any(line.startswith(latency) for line in lines)

            await waiting.until(is_counted, what="a status event that counts")


async def test_dependencies_are_measured(database: Dsn) -> None:
    """Consumers with works and without an agent, a status that nobody was told, and a hold."""
    async with harness.in_process(database) as server:
        for name in ("cluster1", "cluster2", "empty"):
            await server.add_consumer(name)
        async with source(server.sources) as a, agent(server.agents, "cluster1") as one, one.subscribe():
            await one.resync({})
            await a.create("w1", "cluster1", data=bundle_data("first"))
            await a.create("w2", "cluster2", data=bundle_data("second"))
            await server.sql(
                """INSERT INTO status_events (id, created_at, updated_at, resource_id, resource_source, resource_type,
                                              status_event_type)
                   VALUES ('missed', now() + interval '1 hour', now(), 'w1', 'a', '', 'StatusUpdate')"""
            )
            await server.sql(
                """INSERT INTO maestropy_holds (consumer_name, id, reason, message, database_id, work_count, works,
                                                since)
                   VALUES ('cluster2', 'h', 'orphans', '', '', 4, '{}', now())"""
            )
            await server.sql(
                """INSERT INTO maestropy_holds (consumer_name, id, reason, message, database_id, work_count, works,
                                                since, pending_count, pending_works, pending_since, pending_deadline)
                   VALUES ('empty', 'e', '', '', '', 0, '{}', now(), 2, '{w8,w9}', now(), '2033-05-18T03:33:20Z')"""
            )
            # An event for the agent that is connected, and a still older one for the agent that is away.
            await server.sql("UPDATE events SET created_at = now() - interval '20 minutes', reconciled_date = NULL")
            await server.sql("UPDATE events SET created_at = now() - interval '2 hours' WHERE source_id = 'w2'")
            await server.server.maintenance.measure()
            await server.server.primary_watch.run()
            shown = set(server.context.metrics.render()[0].decode().splitlines())
            assert {
                "maestropy_database_up 1",
                "maestropy_consumers_with_works 2",
                'maestropy_consumers_with_works_connected{broker="grpc"} 1',
                "maestropy_held_works 4",
                "maestropy_held_consumers 1",
                "maestropy_pending_evictions 2",
                "maestropy_next_eviction_timestamp_seconds 2000000000",
                "maestropy_status_event_oldest_age_seconds 0",
            } - shown == set()
            ages = {line.split()[0]: float(line.split()[1]) for line in shown if "_oldest_" in line and line[0] != "#"}
            assert 1100 < ages['maestropy_deliverable_event_oldest_age_seconds{broker="grpc"}'] < 1300
            assert 7100 < ages["spec_controller_event_oldest_unreconciled_age_seconds"] < 7300
            # The event lies an hour ahead, so that no dispatcher has taken it for one of the past.
            age = await statuses_age(server, seconds_from_now=7200)
            assert 3500 < age < 3700


async def statuses_age(server: harness.InProcess, *, seconds_from_now: float) -> float:
    now = server.context.now()
    async with server.context.database.connection() as connection:
        return await statuses.oldest_missed_age(
            connection, "another-instance", since=now, now=now + timedelta(seconds=seconds_from_now)
        )
