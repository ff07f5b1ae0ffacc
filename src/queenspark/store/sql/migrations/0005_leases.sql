-- oldest: 0002
-- The holder of a lease, and the invariants of a place.

ALTER TABLE queenspark.places
    ADD COLUMN lease_holder text,
    ADD COLUMN leased_at timestamptz,
    ADD COLUMN held_lease_id uuid;

ALTER TABLE queenspark.places ADD CONSTRAINT places_cursor CHECK (
        (cursor_txid, cursor_id) <= (end_txid, end_id)
        AND (cardinality(pending) > 0 OR (cursor_txid, cursor_id) = (end_txid, end_id))) NOT VALID;
ALTER TABLE queenspark.places ADD CONSTRAINT places_lease_whole CHECK (
        (lease_id IS NULL) = (lease_expires_at IS NULL) AND (lease_id IS NOT NULL OR cardinality(leased) = 0)) NOT VALID;
ALTER TABLE queenspark.places ADD CONSTRAINT places_idle CHECK (
        available_at IS NOT NULL OR (cardinality(pending) = 0 AND cardinality(leased) = 0 AND returned = 0)) NOT VALID;
ALTER TABLE queenspark.places ADD CONSTRAINT places_returned CHECK (returned >= 0) NOT VALID;

ALTER TABLE queenspark.places VALIDATE CONSTRAINT places_cursor;
ALTER TABLE queenspark.places VALIDATE CONSTRAINT places_lease_whole;
ALTER TABLE queenspark.places VALIDATE CONSTRAINT places_idle;
ALTER TABLE queenspark.places VALIDATE CONSTRAINT places_returned;
