"""Series of the dependencies: alerts depend on the text, and on the absence of what is not configured."""

from prometheus_client import CollectorRegistry

from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import rows


def lines(metrics: Metrics) -> list[str]:
    return [line for line in metrics.render()[0].decode().splitlines() if line.startswith("maestropy_")]


def test_series_of_optional_dependencies_are_absent_until_set() -> None:
    metrics = Metrics(CollectorRegistry())
    names = {line.partition("{")[0].partition(" ")[0] for line in lines(metrics)}
    assert "maestropy_database_up" in names
    assert not names & {
        "maestropy_broker_connected",
        "maestropy_consumers_with_works_connected",
        "maestropy_certificate_expiry_timestamp_seconds",
        "maestropy_clock_skew_seconds",
    }


def test_series_of_dependencies() -> None:
    metrics = Metrics(CollectorRegistry())
    dependencies = metrics.dependencies
    assert "maestropy_database_up 1" in lines(metrics)
    dependencies.database_failed()
    dependencies.broker_connected("mqtt", is_connected=False)
    dependencies.consumers(rows.ConsumerCounts(with_works=5, connected=3), knows_agents=True)
    dependencies.oldest_status_event(7.5)
    dependencies.oldest_deliverable_event(8.5)
    dependencies.held(rows.HeldCounts(works=4, consumers=2, pending_evictions=3, next_eviction=1_800_000_000.0))
    dependencies.certificate_expires("grpc-tls-cert-file", 1_900_000_000)
    dependencies.clock_skew(-3.5)
    expected = {
        "maestropy_database_up 0",
        'maestropy_broker_connected{broker="mqtt"} 0',
        "maestropy_consumers_with_works 5",
        'maestropy_consumers_with_works_connected{broker="grpc"} 3',
        "maestropy_status_event_oldest_age_seconds 7.5",
        "maestropy_held_works 4",
        "maestropy_held_consumers 2",
        "maestropy_pending_evictions 3",
        "maestropy_next_eviction_timestamp_seconds 1800000000",
        'maestropy_deliverable_event_oldest_age_seconds{broker="grpc"} 8.5',
        'maestropy_certificate_expiry_timestamp_seconds{certificate="grpc-tls-cert-file"} 1900000000',
        'maestropy_clock_skew_seconds{reference="database"} -3.5',
    }
    assert expected - set(lines(metrics)) == set()
    dependencies.database_answered(0.02)
    assert {
        "maestropy_database_up 1",
        'maestropy_database_check_duration_seconds_bucket{le="0.01"} 0',
        'maestropy_database_check_duration_seconds_bucket{le="0.025"} 1',
    } - set(lines(metrics)) == set()
