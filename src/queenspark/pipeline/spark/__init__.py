"""Spark itself: Java, the session, its properties and its log."""
