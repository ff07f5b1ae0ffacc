"""Restores of backups and continued use: dumps, point-in-time recovery, promoted replicas."""
