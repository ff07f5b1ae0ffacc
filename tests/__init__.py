"""Tests of Queenspark."""
