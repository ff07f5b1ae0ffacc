"""Tests of the window engine, judged by an oracle."""
