"""The streams query: one Spark query that cuts the messages of all streams into windows."""
