"""Formats shared by several packages, each defined once. Imports nothing else of Queenspark."""
