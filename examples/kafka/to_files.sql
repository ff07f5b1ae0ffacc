-- Kafka to files by hour: every record as it is, with its offset, in a folder for each hour.

CREATE SOURCE kafka_archive_orders (user STRING, amount DOUBLE)
WITH (connector = 'kafka', brokers = 'localhost:9092', topic = 'orders');

CREATE SINK kafka_archive AS
SELECT user, amount, _partition AS kafka_partition, _offset AS kafka_offset,
       DATE_FORMAT(_timestamp, 'yyyy-MM-dd-HH') AS hour
FROM kafka_archive_orders
WITH (connector = 'files', path = '/tmp/kafka-archive', format = 'parquet', partition_by = 'hour');
