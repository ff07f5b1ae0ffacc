"""Queries of jobs with external sources and sinks."""
