-- oldest: 0002
-- A seek in a stream stays with the group: windows that end at or before its time are skipped, also those that are sealed
-- later. Versions that do not know the column deliver them.

ALTER TABLE queenspark.groups ADD COLUMN skip_until timestamptz;
