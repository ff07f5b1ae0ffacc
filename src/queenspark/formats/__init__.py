"""What several parts write and read, each with one definition. Knows no other part of Queenspark."""
