-- The change from the previous price, and the mean of the last three, per share.

CREATE STREAM quotes (share STRING, price DECIMAL(10, 2)) WITH (queue = 'quotes');

INSERT INTO quotes VALUES
  ('ACME', 10.00),
  ('ACME', 12.50),
  ('INIT', 5.00),
  ('ACME', 11.00),
  ('INIT', 5.25);

CREATE STREAM quote_moves AS
SELECT share, price,
  price - LAG(price) OVER (ROWS WINDOW BUFFER 2 ROWS PARTITION BY share) AS move,
  AVG(price) OVER (ROWS WINDOW BUFFER 3 ROWS PARTITION BY share) AS mean
FROM quotes;

-- rows of quote_moves
-- {"share": "ACME", "price": 10.00, "move": null, "mean": 10.000000}
-- {"share": "ACME", "price": 12.50, "move": 2.50, "mean": 11.250000}
-- {"share": "INIT", "price": 5.00, "move": null, "mean": 5.000000}
-- {"share": "ACME", "price": 11.00, "move": -1.50, "mean": 11.166667}
-- {"share": "INIT", "price": 5.25, "move": 0.25, "mean": 5.125000}
