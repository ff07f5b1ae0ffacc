-- Visits: the clicks of a user with less than thirty minutes between them.

CREATE STREAM page_views (user STRING, page STRING, at TIMESTAMP) WITH (queue = 'page_views');

INSERT INTO page_views VALUES
  ('anna', '/',      TIMESTAMP '2026-01-31 12:00:00'),
  ('bert', '/help',  TIMESTAMP '2026-01-31 12:05:00'),
  ('anna', '/books', TIMESTAMP '2026-01-31 12:10:00'),
  ('anna', '/cart',  TIMESTAMP '2026-01-31 12:35:00'),
  ('anna', '/',      TIMESTAMP '2026-01-31 14:00:00');

CREATE STREAM page_visits AS
SELECT user, COUNT(*) AS views, FIRST(page) AS entry, LAST(page) AS exit, window_start
FROM page_views
GROUP BY user
WINDOW SESSION(at, 30m);

-- rows of page_visits
-- {"user": "anna", "views": 3, "entry": "/", "exit": "/cart", "window_start": "2026-01-31T12:00:00.000000Z"}
-- {"user": "bert", "views": 1, "entry": "/help", "exit": "/help", "window_start": "2026-01-31T12:05:00.000000Z"}
-- {"user": "anna", "views": 1, "entry": "/", "exit": "/", "window_start": "2026-01-31T14:00:00.000000Z"}
