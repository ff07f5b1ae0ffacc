-- oldest: 0002
-- Jobs with external sources or sinks: each has its own query and its own progress.

-- The progress of each bucket of such a job, committed together with its rows; like `progress`.
CREATE TABLE queenspark.job_progress (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    bucket integer NOT NULL,
    buckets integer NOT NULL,
    epoch bigint NOT NULL,
    batch bigint NOT NULL,
    state jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    run text GENERATED ALWAYS AS (state ->> 'run') STORED,
    txid bigint GENERATED ALWAYS AS ((state ->> 'txid')::bigint) STORED,
    id bigint GENERATED ALWAYS AS ((state ->> 'id')::bigint) STORED,
    next_close bigint GENERATED ALWAYS AS ((state ->> 'next_close')::bigint) STORED,
    PRIMARY KEY (stream_id, version, bucket)
) WITH (fillfactor = 50);

-- The pipeline's report on a version of such a job: its read progress, and when it finished a finite source.
CREATE TABLE queenspark.job_runs (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    report jsonb NOT NULL DEFAULT '{}',
    finished_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version)
) WITH (fillfactor = 50);

-- The files that a version of a job reads, in their order; append-only, because positions are numbers of files.
CREATE TABLE queenspark.job_files (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    number bigint NOT NULL,
    path text NOT NULL,
    bytes bigint NOT NULL,
    modified_us bigint NOT NULL,
    PRIMARY KEY (stream_id, version, number),
    UNIQUE (stream_id, version, path)
);
