"""Queries of single jobs: those that read or write outside have a Spark query of their own each."""
