"""Backups that are restored and used: dumps, point-in-time recovery, a promoted replica."""
