-- oldest: 0002
-- Data for upgrades: the versions that may still run, and the installed sets of functions.

ALTER TABLE queenspark.system ADD COLUMN oldest integer NOT NULL DEFAULT 0;

CREATE TABLE queenspark.function_sets (
    name text PRIMARY KEY,
    level integer NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
