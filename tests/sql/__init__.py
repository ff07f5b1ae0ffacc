"""Tests of the SQL dialect."""
