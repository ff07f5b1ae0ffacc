"""The streams query: one Spark query that computes the windows of all streams."""
