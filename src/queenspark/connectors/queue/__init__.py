"""Queues as the source of jobs with an external sink."""
