-- oldest: 0002
-- The size of Spark's state over time. Versions that do not know the column report none.

ALTER TABLE queenspark.samples ADD COLUMN state_bytes bigint NOT NULL DEFAULT 0;
