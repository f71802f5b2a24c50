-- When the delete request for a resource is sent again. Only deletions that take longer than seconds have a row; it is
-- removed with the resource.
CREATE TABLE IF NOT EXISTS maestropy_reminders (
    id text PRIMARY KEY REFERENCES resources (id) ON DELETE CASCADE,
    next_at timestamptz NOT NULL
);
