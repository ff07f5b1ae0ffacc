"""The connector `kafka`: topics as sources and sinks, using only librdkafka."""
