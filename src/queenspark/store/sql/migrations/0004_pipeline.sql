-- oldest: 0002
-- Measurements of each stream by the leading pipeline.

-- Rates of each stream over the last minute, a second. Rows are written only when a rate changes.
CREATE TABLE queenspark.stream_rates (
    stream_id integer PRIMARY KEY,
    arriving double precision NOT NULL,                 -- messages in its source queues
    processed double precision NOT NULL,                -- records
    sealed double precision NOT NULL,                   -- windows
    late double precision NOT NULL,                     -- records after their window was sealed
    backpressure double precision NOT NULL,             -- arrived over processed; above 1 it falls behind
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
