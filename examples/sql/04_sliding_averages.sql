-- The average of the last minute, every thirty seconds. Each record is in two windows.

CREATE STREAM cpu (host STRING, percent DOUBLE, at TIMESTAMP) WITH (queue = 'cpu');

INSERT INTO cpu VALUES
  ('web-1', 40, TIMESTAMP '2026-01-31 12:00:10'),
  ('web-1', 60, TIMESTAMP '2026-01-31 12:00:40'),
  ('web-1', 80, TIMESTAMP '2026-01-31 12:01:10');

CREATE STREAM cpu_averages AS
SELECT host, AVG(percent) AS average, COUNT(*) AS samples, window_end
FROM cpu
GROUP BY host
WINDOW SLIDING(at, 1m, 30s);

-- rows of cpu_averages
-- {"host": "web-1", "average": 40.0, "samples": 1, "window_end": "2026-01-31T12:00:30.000000Z"}
-- {"host": "web-1", "average": 50.0, "samples": 2, "window_end": "2026-01-31T12:01:00.000000Z"}
-- {"host": "web-1", "average": 70.0, "samples": 2, "window_end": "2026-01-31T12:01:30.000000Z"}
-- {"host": "web-1", "average": 80.0, "samples": 1, "window_end": "2026-01-31T12:02:00.000000Z"}
