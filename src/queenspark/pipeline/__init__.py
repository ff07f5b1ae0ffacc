"""The data pipeline on Spark: Java, the session, and the data source `queen`."""
