-- oldest: 0002
-- Where a job with its own query started, which a lost checkpoint does not change. Versions that do not know the column
-- evaluate `start` again.

ALTER TABLE queenspark.job_runs ADD COLUMN start json;
