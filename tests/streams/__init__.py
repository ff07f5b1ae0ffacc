"""Tests of streams: the store, the HTTP API, retention, and the published client."""
