-- The identity of this database. Agents remember it with every work that they apply, and delete nothing for a server on
-- another database. Backups keep it: a restored database has the identity of the one that was saved.
CREATE TABLE IF NOT EXISTS maestropy_database (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    id text NOT NULL,
    created_at timestamptz NOT NULL
);
INSERT INTO maestropy_database (id, created_at)
VALUES (gen_random_uuid()::text, now())
ON CONFLICT DO NOTHING;
-- Works that the agent of a consumer keeps although this database does not ask for them. The agent reports them with its
-- spec resync requests, and the row is removed when it reports none.
CREATE TABLE IF NOT EXISTS maestropy_holds (
    consumer_name text PRIMARY KEY,
    id text NOT NULL,
    reason text NOT NULL,
    message text NOT NULL,
    database_id text NOT NULL, -- the database that the works came from, empty if it is not known
    work_count bigint NOT NULL,
    works text[] NOT NULL,     -- names, at most 2,000
    since timestamptz NOT NULL
);
-- Who ended which hold: from then on this database decides about the works that were held. Rows are never removed.
CREATE TABLE IF NOT EXISTS maestropy_adoptions (
    hold_id text PRIMARY KEY,
    consumer_name text NOT NULL,
    database_id text NOT NULL, -- this database
    reason text NOT NULL,
    from_database_id text NOT NULL,
    work_count bigint NOT NULL,
    works text[] NOT NULL,
    adopted_by text NOT NULL,
    adopted_at timestamptz NOT NULL
);
