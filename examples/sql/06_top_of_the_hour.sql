-- Articles that sold more than a hundred pieces in an hour. HAVING uses column aliases.

CREATE STREAM article_sales (article STRING, pieces BIGINT, at TIMESTAMP) WITH (queue = 'article_sales');

INSERT INTO article_sales VALUES
  ('tea', 70, TIMESTAMP '2026-01-31 12:10:00'),
  ('cup', 30, TIMESTAMP '2026-01-31 12:20:00'),
  ('tea', 50, TIMESTAMP '2026-01-31 12:55:00'),
  ('cup', 80, TIMESTAMP '2026-01-31 13:05:00'),
  ('cup', 45, TIMESTAMP '2026-01-31 13:40:00'),
  ('tea', 10, TIMESTAMP '2026-01-31 13:45:00');

CREATE STREAM top_articles AS
SELECT article, SUM(pieces) AS pieces, MAX(pieces) AS largest_order, DATE_TRUNC('HOUR', window_start) AS hour
FROM article_sales
GROUP BY article
WINDOW TUMBLING(at, 1h)
HAVING pieces > 100;

-- rows of top_articles
-- {"article": "tea", "pieces": 120, "largest_order": 70, "hour": "2026-01-31T12:00:00.000000Z"}
-- {"article": "cup", "pieces": 125, "largest_order": 80, "hour": "2026-01-31T13:00:00.000000Z"}
