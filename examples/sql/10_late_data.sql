-- The same late record in three jobs: it revises the window, is dropped, or arrives within the grace.

CREATE STREAM meters (meter STRING, kwh BIGINT, at TIMESTAMP) WITH (queue = 'meters');

INSERT INTO meters VALUES
  ('m1', 5, TIMESTAMP '2026-01-31 08:10:00'),
  ('m1', 9, TIMESTAMP '2026-01-31 09:05:00'),
  ('m1', 2, TIMESTAMP '2026-01-31 08:50:00');

CREATE STREAM kwh_revised AS
SELECT meter, SUM(kwh) AS kwh, HOUR(window_start) AS hour, _revision AS revision
FROM meters GROUP BY meter WINDOW TUMBLING(at, 1h);

CREATE STREAM kwh_strict AS
SELECT meter, SUM(kwh) AS kwh, HOUR(window_start) AS hour
FROM meters GROUP BY meter WINDOW TUMBLING(at, 1h)
WITH (late = 'drop');

CREATE STREAM kwh_patient AS
SELECT meter, SUM(kwh) AS kwh, HOUR(window_start) AS hour
FROM meters GROUP BY meter WINDOW TUMBLING(at, 1h)
WITH (grace = '30m', idle_timeout = '10s');

-- rows of kwh_revised
-- {"meter": "m1", "kwh": 5, "hour": 8, "revision": 1}
-- {"meter": "m1", "kwh": 7, "hour": 8, "revision": 2}
-- {"meter": "m1", "kwh": 9, "hour": 9, "revision": 1}

-- rows of kwh_strict
-- {"meter": "m1", "kwh": 5, "hour": 8}
-- {"meter": "m1", "kwh": 9, "hour": 9}

-- rows of kwh_patient
-- {"meter": "m1", "kwh": 7, "hour": 8}
-- {"meter": "m1", "kwh": 9, "hour": 9}
