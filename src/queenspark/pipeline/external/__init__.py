"""Spark queries of jobs with an external source or sink, one for each job."""
