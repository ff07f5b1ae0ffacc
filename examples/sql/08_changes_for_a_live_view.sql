-- A live view: every vote emits the current score of its candidate. Keep the last row of each partition.

CREATE STREAM votes (candidate STRING, points BIGINT) WITH (queue = 'votes');

INSERT INTO votes VALUES
  ('tea', 1),
  ('coffee', 1),
  ('tea', 2),
  ('coffee', 1),
  ('tea', 1);

CREATE STREAM scores AS
SELECT candidate, COUNT(*) AS votes, SUM(points) AS points
FROM votes
GROUP BY candidate
EMIT CHANGES;

-- rows of scores
-- {"candidate": "tea", "votes": 1, "points": 1}
-- {"candidate": "coffee", "votes": 1, "points": 1}
-- {"candidate": "tea", "votes": 2, "points": 3}
-- {"candidate": "coffee", "votes": 2, "points": 2}
-- {"candidate": "tea", "votes": 3, "points": 4}
