"""The whole system: push over HTTP, Spark, poll."""
