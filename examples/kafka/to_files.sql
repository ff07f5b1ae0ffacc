-- Kafka to files by hour: every record with its offset, in one folder per day and hour.

CREATE SOURCE kafka_archive_orders (user STRING, amount DOUBLE)
WITH (connector = 'kafka', brokers = 'localhost:9092', topic = 'orders');

CREATE SINK kafka_archive AS
SELECT user, amount, _partition AS kafka_partition, _offset AS kafka_offset,
       CAST(_timestamp AS DATE) AS day, HOUR(_timestamp) AS hour
FROM kafka_archive_orders
WITH (connector = 'files', path = '/tmp/kafka-archive', format = 'parquet', partition_by = 'day, hour');
