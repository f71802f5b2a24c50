-- When the agent of a bundle that is being deleted is told of it again. Only deletions that take longer than seconds
-- have a row; it goes with the bundle.
CREATE TABLE IF NOT EXISTS maestropy_reminders (
    id text PRIMARY KEY REFERENCES resources (id) ON DELETE CASCADE,
    next_at timestamptz NOT NULL
);
