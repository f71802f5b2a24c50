-- Searches and lists that a million resources do not slow down. Work names have no limit in a Go server: SP-GiST stores
-- values of any length, where a B-tree rejects long ones and with them the write. The other columns have B-trees of the Go
-- server already. `text_pattern_ops` serves `=` and `like 'x%'` whatever the collation of the database is.
-- concurrently
CREATE INDEX CONCURRENTLY maestropy_resources_work_name ON resources USING spgist ((payload -> 'metadata' ->> 'name'));
CREATE INDEX CONCURRENTLY maestropy_resources_consumer ON resources (consumer_name text_pattern_ops, created_at, id);
CREATE INDEX CONCURRENTLY maestropy_resources_source ON resources (source text_pattern_ops, created_at, id);
CREATE INDEX CONCURRENTLY maestropy_resources_name ON resources (name text_pattern_ops);
