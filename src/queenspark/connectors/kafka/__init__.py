"""The connector `kafka`: topics as sources and sinks, on librdkafka and nothing else."""
