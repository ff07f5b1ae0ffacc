-- Filter records: large orders go to a separate queue.

CREATE STREAM shop_orders (id BIGINT, customer STRING, amount DECIMAL(10, 2)) WITH (queue = 'shop_orders');

INSERT INTO shop_orders VALUES
  (1, 'anna', 12.50),
  (2, 'bert', 140.00),
  (3, 'anna', 99.99),
  (4, 'carl', NULL),
  (5, 'anna', 250.00);

CREATE STREAM large_orders AS
SELECT id, customer, amount
FROM shop_orders
WHERE amount >= 100;

-- rows of large_orders
-- {"id": 2, "customer": "bert", "amount": 140.00}
-- {"id": 5, "customer": "anna", "amount": 250.00}
