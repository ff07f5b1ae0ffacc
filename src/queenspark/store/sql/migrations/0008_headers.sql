-- oldest: 0002
-- Headers of messages: a JSON object of strings, or NULL where a message has none. Versions that do not know the column
-- leave it NULL.

ALTER TABLE queenspark.messages ADD COLUMN headers text;
ALTER TABLE queenspark.dead_letters ADD COLUMN headers text;
ALTER TABLE queenspark.staged ADD COLUMN headers text;
