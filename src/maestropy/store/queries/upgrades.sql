-- name: tables_of_0_1
-- Version 0.1 kept its own tables under the project's former name. Returns those that exist, and whether the table of
-- this version exists as well.
SELECT old.relname AS old_name, 'maestropy' || substr(old.relname, 10) AS new_name,
       to_regclass('maestropy' || substr(old.relname, 10)) IS NOT NULL AS is_taken
FROM pg_class old
WHERE old.relkind = 'r' AND old.relnamespace = current_schema()::regnamespace
  AND old.relname IN ('pymaestro_migrations', 'pymaestro_instances', 'pymaestro_reminders')
ORDER BY old.relname;

-- name: rename_tables_of_0_1
-- Rename every table and index that still has the former name, and the recorded migrations. Keeps every row.
DO $$
DECLARE
    old record;
BEGIN
    FOR old IN
        SELECT relname, relkind FROM pg_class
        WHERE relname LIKE 'pymaestro\_%' AND relkind IN ('r', 'i') AND relnamespace = current_schema()::regnamespace
        ORDER BY relkind DESC, relname
    LOOP
        IF to_regclass('maestropy' || substr(old.relname, 10)) IS NULL THEN
            EXECUTE format(CASE old.relkind WHEN 'r' THEN 'ALTER TABLE %I RENAME TO %I' ELSE 'ALTER INDEX %I RENAME TO %I' END,
                           old.relname, 'maestropy' || substr(old.relname, 10));
        END IF;
    END LOOP;
    IF to_regclass('maestropy_migrations') IS NOT NULL THEN
        UPDATE maestropy_migrations m SET id = replace(m.id, 'pymaestro_', 'maestropy_')
        WHERE m.id LIKE 'pymaestro\_%'
          AND NOT EXISTS (SELECT 1 FROM maestropy_migrations t WHERE t.id = replace(m.id, 'pymaestro_', 'maestropy_'));
    END IF;
END
$$;
