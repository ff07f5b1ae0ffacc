"""Spark itself."""
