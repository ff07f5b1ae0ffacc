-- Kafka to a queue: what each user pays per hour. The rows are messages of the queue kafka_spending, each there once.

CREATE SOURCE kafka_orders (user STRING, amount DOUBLE, at TIMESTAMP)
WITH (connector = 'kafka', brokers = 'localhost:9092', topic = 'orders');

CREATE STREAM kafka_spending AS
SELECT user, COUNT(*) AS orders, SUM(amount) AS spent, window_start AS hour
FROM kafka_orders GROUP BY user WINDOW TUMBLING(at, 1h) WITH (grace = '10s');
