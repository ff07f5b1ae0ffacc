-- oldest: 0002
-- What upgrades need to know: which versions may still run, and which sets of functions are installed.

ALTER TABLE queenspark.system ADD COLUMN oldest integer NOT NULL DEFAULT 0;

CREATE TABLE queenspark.function_sets (
    name text PRIMARY KEY,
    level integer NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
