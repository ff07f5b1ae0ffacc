"""Tests over HTTP: a real broker on a real PostgreSQL, seen as a client sees them."""
