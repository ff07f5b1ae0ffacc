"""The pipeline on a real Spark and a real PostgreSQL."""
