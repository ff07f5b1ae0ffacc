"""External data that jobs read and write: files and Kafka. Without Spark: brokers check sources, too."""
