"""Connectors for external data: files and Kafka. Free of Spark, because brokers use them to check sources."""
