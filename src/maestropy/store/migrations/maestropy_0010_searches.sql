-- Searches and lists that a million resources do not slow down. None of these can fail a write of a Go server: SP-GiST
-- stores values of any length, where a B-tree rejects long ones. `text_pattern_ops` serves `=` and `like 'x%'` whatever the
-- collation of the database is.
-- concurrently
CREATE INDEX CONCURRENTLY maestropy_resources_work_name ON resources USING spgist ((payload -> 'metadata' ->> 'name'));
CREATE INDEX CONCURRENTLY maestropy_resources_consumer ON resources (consumer_name text_pattern_ops, created_at, id);
CREATE INDEX CONCURRENTLY maestropy_resources_source ON resources (source text_pattern_ops, created_at, id);
CREATE INDEX CONCURRENTLY maestropy_resources_name ON resources (name text_pattern_ops);
