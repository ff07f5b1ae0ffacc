"""The connector `queen`: queues as a data source of any PySpark program."""
