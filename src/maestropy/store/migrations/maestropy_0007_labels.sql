-- The index idx_resources_payload_labels of 202609101040 is the same; a second one costs time with every write.
-- concurrently
DROP INDEX CONCURRENTLY IF EXISTS maestropy_resources_labels;
