-- oldest: 0002
-- The time of a seek in a stream holds until the next seek. A seek in one partition sets `sought` there. A seek of the
-- whole group by a version that does not know `skip_until` is recognized: only discovery moves the seen position
-- otherwise, forward and to a message, whose id is not 0. Earlier versions do not set `sought`: after their seek in one
-- partition, windows that end at or before the time of the group's seek are still skipped there.

ALTER TABLE queenspark.places ADD COLUMN sought boolean NOT NULL DEFAULT false;

CREATE FUNCTION queenspark.forget_skip() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    NEW.skip_until := NULL;
    RETURN NEW;
END
$$;

CREATE TRIGGER groups_sought BEFORE UPDATE OF start_txid, seen_txid ON queenspark.groups FOR EACH ROW
WHEN (OLD.skip_until = NEW.skip_until AND (
    NEW.seen_id = 0 OR (NEW.seen_txid, NEW.seen_id) < (OLD.seen_txid, OLD.seen_id)
    OR (NEW.start_txid, NEW.start_id) <> (OLD.start_txid, OLD.start_id)))
EXECUTE FUNCTION queenspark.forget_skip();
