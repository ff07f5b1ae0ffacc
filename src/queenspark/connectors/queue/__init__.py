"""Queues as a source of jobs that write outside."""
