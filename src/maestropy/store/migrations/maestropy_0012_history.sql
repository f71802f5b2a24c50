-- The history of works, consumers and refused requests: partitions by time, which maintenance creates ahead and drops.
-- No foreign key: history stays when its work or consumer is gone. A row without a partition of its time goes into the
-- default partition, so that a missing partition fails no write. Go servers neither read nor write these tables.
CREATE SEQUENCE IF NOT EXISTS maestropy_history_id CACHE 32;
CREATE TABLE IF NOT EXISTS maestropy_history (
    id bigint NOT NULL DEFAULT nextval('maestropy_history_id'),
    at timestamptz NOT NULL,
    kind text NOT NULL,
    subject_id text NOT NULL,
    consumer_name text NOT NULL,
    source text NOT NULL,
    version bigint NOT NULL,
    actor text NOT NULL,
    address text NOT NULL,
    operation_id text NOT NULL,
    result text NOT NULL,
    detail text NOT NULL
) PARTITION BY RANGE (at);
CREATE INDEX IF NOT EXISTS maestropy_history_of_subject ON maestropy_history (subject_id, at, id);
CREATE INDEX IF NOT EXISTS maestropy_history_of_consumer ON maestropy_history (consumer_name, at, id);
CREATE INDEX IF NOT EXISTS maestropy_history_in_time ON maestropy_history (at, id);
CREATE TABLE IF NOT EXISTS maestropy_history_default PARTITION OF maestropy_history DEFAULT;
