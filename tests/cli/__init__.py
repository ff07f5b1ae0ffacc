"""Tests of the command line, the settings and the embedded PostgreSQL."""
