-- The ID of the source's event that created a resource, and after the removal of the resource in its last status event: a
-- late copy of that event must not create the resource again. A Go server leaves both empty.
ALTER TABLE renditions ADD COLUMN IF NOT EXISTS created_by text;
ALTER TABLE status_events ADD COLUMN IF NOT EXISTS maestropy_created_by text;
