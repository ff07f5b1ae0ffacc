-- Totals per country and minute, by event time.

CREATE STREAM payments (country STRING, amount BIGINT, at TIMESTAMP) WITH (queue = 'payments');

INSERT INTO payments VALUES
  ('DE', 20, TIMESTAMP '2026-01-31 12:00:10'),
  ('FR', 15, TIMESTAMP '2026-01-31 12:00:20'),
  ('DE', 30, TIMESTAMP '2026-01-31 12:00:50'),
  ('DE',  5, TIMESTAMP '2026-01-31 12:01:05'),
  ('FR', 40, TIMESTAMP '2026-01-31 12:01:30');

CREATE STREAM payment_totals AS
SELECT country, SUM(amount) AS total, COUNT(*) AS payments, window_start
FROM payments
GROUP BY country
WINDOW TUMBLING(at, 1m);

-- A window is sealed when a later record of its country arrives, or after ten seconds of inactivity.
-- rows of payment_totals
-- {"country": "DE", "total": 50, "payments": 2, "window_start": "2026-01-31T12:00:00.000000Z"}
-- {"country": "FR", "total": 15, "payments": 1, "window_start": "2026-01-31T12:00:00.000000Z"}
-- {"country": "DE", "total": 5, "payments": 1, "window_start": "2026-01-31T12:01:00.000000Z"}
-- {"country": "FR", "total": 40, "payments": 1, "window_start": "2026-01-31T12:01:00.000000Z"}
