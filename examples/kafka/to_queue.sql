-- Kafka to a queue: spending per user and hour. The rows are messages in the queue kafka_spending, exactly once.

CREATE SOURCE kafka_orders (user STRING, amount DOUBLE, at TIMESTAMP)
WITH (connector = 'kafka', brokers = 'localhost:9092', topic = 'orders');

CREATE STREAM kafka_spending AS
SELECT user, COUNT(*) AS orders, SUM(amount) AS spent, window_start AS hour
FROM kafka_orders GROUP BY user WINDOW TUMBLING(at, 1h) WITH (grace = '10s');
