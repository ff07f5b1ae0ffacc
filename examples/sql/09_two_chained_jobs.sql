-- Totals per minute, then the busiest minute of each hour from those rows, by their event time.

CREATE STREAM requests (service STRING, ms BIGINT, at TIMESTAMP) WITH (queue = 'requests');

INSERT INTO requests VALUES
  ('login',  30, TIMESTAMP '2026-01-31 12:00:05'),
  ('search', 90, TIMESTAMP '2026-01-31 12:00:30'),
  ('login',  45, TIMESTAMP '2026-01-31 12:00:45'),
  ('login',  20, TIMESTAMP '2026-01-31 12:01:10'),
  ('search', 60, TIMESTAMP '2026-01-31 12:10:00');

-- GROUP BY and WINDOW read only append streams. late = 'drop' makes this one an append stream.
CREATE STREAM request_minutes AS
SELECT service, COUNT(*) AS requests, MAX(ms) AS slowest, window_start AS minute
FROM requests
GROUP BY service
WINDOW TUMBLING(at, 1m)
WITH (late = 'drop');

-- The last minute is emitted after ten seconds of inactivity, so the hours need a longer idle timeout.
CREATE STREAM request_hours AS
SELECT service, SUM(requests) AS requests, MAX_BY(minute, requests) AS busiest, MAX(slowest) AS slowest
FROM request_minutes
GROUP BY service
WINDOW TUMBLING(1h)
WITH (idle_timeout = '20s');

-- rows of request_hours
-- {"service": "search", "requests": 2, "busiest": "2026-01-31T12:10:00.000000Z", "slowest": 90}
-- {"service": "login", "requests": 3, "busiest": "2026-01-31T12:00:00.000000Z", "slowest": 45}
