"""Data outside that jobs read and write: files and Kafka. No Spark here: brokers check sources with it too."""
