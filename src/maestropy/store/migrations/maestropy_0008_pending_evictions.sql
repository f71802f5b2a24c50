-- Works of an agent that wait for eviction, beside those that it holds, and when the first of them may be evicted.
ALTER TABLE maestropy_holds
    ADD COLUMN IF NOT EXISTS pending_count bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS pending_works text[] NOT NULL DEFAULT '{}', -- names, at most 2,000
    ADD COLUMN IF NOT EXISTS pending_since timestamptz,
    ADD COLUMN IF NOT EXISTS pending_deadline timestamptz;
