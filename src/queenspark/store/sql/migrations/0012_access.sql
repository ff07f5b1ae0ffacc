-- Access: API keys, and the log of administrative acts.

CREATE TABLE queenspark.api_keys (
    id text PRIMARY KEY,
    name text NOT NULL,
    -- SHA-256 of the secret, which has 256 random bits: there is nothing to guess that a slow hash would protect.
    hash bytea NOT NULL,
    role text CHECK (role IN ('read-only', 'read-write', 'admin')),
    -- NULL: every name.
    scopes text[],
    -- NULL: unlimited.
    requests_per_second float8,
    messages_per_second float8,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz,
    -- Written a few seconds late.
    last_used_at timestamptz,
    revoked_at timestamptz,
    CHECK (role IS NOT NULL OR scopes IS NOT NULL)
);

CREATE TABLE queenspark.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    caller text NOT NULL,
    -- 'anonymous', 'key', 'token', or 'database' for direct access to the database.
    kind text NOT NULL,
    address text NOT NULL,
    action text NOT NULL,
    subject text,
    status integer NOT NULL
);
CREATE INDEX audit_at ON queenspark.audit (at);
