"""Tests of the formats that several parts share."""
