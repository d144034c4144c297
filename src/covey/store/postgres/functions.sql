-- A group of changes is written by one statement: `covey_commit`. So a fence and what it guards cannot be parted, a
-- client that freezes leaves no transaction open, and a group costs one round trip.

-- Contents of files that no version needs any more.
CREATE OR REPLACE FUNCTION covey_forget_blobs(w text, digests text[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM blobs WHERE workspace_id = w AND digest = ANY (digests)
        AND NOT EXISTS (SELECT 1 FROM file_versions v WHERE v.workspace_id = w AND v.before = blobs.digest AND v.size > 0)
        AND NOT EXISTS (SELECT 1 FROM file_versions v WHERE v.workspace_id = w AND v.after = blobs.digest AND v.size > 0)
$$;

-- The oldest contents of a session go until what it keeps fits its bound. That they were there stays known.
CREATE OR REPLACE FUNCTION covey_forget_versions(w text, s text, bound bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    gone text[];
BEGIN
    WITH held AS (
        SELECT position, sum(size) OVER (ORDER BY position DESC) AS upto FROM file_versions
            WHERE workspace_id = w AND session_id = s AND size > 0
    ), dropped AS (
        UPDATE file_versions v SET size = 0 FROM held
            WHERE v.workspace_id = w AND v.session_id = s AND v.position = held.position AND held.upto > bound
            RETURNING v.before, v.after
    )
    SELECT array_agg(before) || array_agg(after) INTO gone FROM dropped;
    IF gone IS NOT NULL THEN
        PERFORM covey_forget_blobs(w, gone);
    END IF;
END $$;

-- A batch of what a dropped session has left; whether there may be more.
CREATE OR REPLACE FUNCTION covey_drop_batch(w text, s text, batch integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    ids text[];
    gone text[];
    versions integer;
BEGIN
    WITH dropped AS (
        DELETE FROM messages WHERE workspace_id = w AND id IN (
            SELECT id FROM messages WHERE workspace_id = w AND session_id = s ORDER BY position LIMIT batch
        ) RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO ids FROM dropped;
    DELETE FROM message_tails WHERE workspace_id = w AND message_id = ANY (ids);
    WITH dropped AS (
        DELETE FROM file_versions WHERE workspace_id = w AND session_id = s AND position IN (
            SELECT position FROM file_versions WHERE workspace_id = w AND session_id = s ORDER BY position LIMIT batch
        ) RETURNING before, after
    )
    SELECT count(*), array_agg(before) || array_agg(after) INTO versions, gone FROM dropped;
    IF versions > 0 THEN
        PERFORM covey_forget_blobs(w, gone);
    END IF;
    RETURN cardinality(ids) = batch OR versions = batch;
END $$;

-- One write. False: the run is there already, and nothing of its change may be written.
CREATE OR REPLACE FUNCTION covey_write(
    me text, w text, kind text, a text, b text, c text, d text, e text, n bigint, m bigint, x bytea, y bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    CASE kind
    WHEN 'message' THEN
        INSERT INTO messages (workspace_id, id, session_id, run_id, role, is_prompt, value, words)
            VALUES (w, a, b, c, d, n = 1, x, array_to_tsvector(string_to_array(e, ' ')))
            ON CONFLICT (workspace_id, id) DO UPDATE SET value = excluded.value, words = excluded.words;
        DELETE FROM message_tails WHERE workspace_id = w AND message_id = a;
    WHEN 'tail' THEN
        INSERT INTO message_tails VALUES (w, a, n, m, b, x);
    WHEN 'new run' THEN
        INSERT INTO runs VALUES (w, a, b, n, c, m & 1 = 1, m & 2 = 2, d, x, y) ON CONFLICT (workspace_id, run_id) DO NOTHING;
        RETURN FOUND;
    WHEN 'run' THEN
        UPDATE runs SET state = c, ended = m & 1 = 1, cancelled = m & 2 = 2, value = x WHERE workspace_id = w AND run_id = a;
    WHEN 'session' THEN
        INSERT INTO sessions (workspace_id, id, value, updated_at, shelf, parent, words)
            VALUES (w, a, x, n, m, b, array_to_tsvector(string_to_array(e, ' ')))
            ON CONFLICT (workspace_id, id) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,
                shelf = excluded.shelf, parent = excluded.parent, words = excluded.words;
    WHEN 'mark' THEN
        UPDATE sessions SET mark = greatest(mark, n) WHERE workspace_id = w AND id = a;
    WHEN 'early cancel' THEN
        DELETE FROM early_cancels WHERE workspace_id = w AND until < c::double precision - 3600;
        INSERT INTO early_cancels VALUES (w, a, c::double precision)
            ON CONFLICT (workspace_id, run_id) DO UPDATE SET until = excluded.until;
    WHEN 'spending' THEN
        INSERT INTO spending VALUES (n, w, a, 1, (c::jsonb ->> 0)::bigint, (c::jsonb ->> 1)::bigint,
                (c::jsonb ->> 2)::bigint, (c::jsonb ->> 3)::double precision)
            ON CONFLICT (day, workspace_id, model) DO UPDATE SET runs = spending.runs + 1,
                prompt_tokens = spending.prompt_tokens + excluded.prompt_tokens,
                completion_tokens = spending.completion_tokens + excluded.completion_tokens,
                cached_tokens = spending.cached_tokens + excluded.cached_tokens, cost = spending.cost + excluded.cost;
    WHEN 'blob' THEN
        INSERT INTO blobs VALUES (w, a, x) ON CONFLICT DO NOTHING;
    WHEN 'file version' THEN
        INSERT INTO file_versions (workspace_id, session_id, run_id, message_id, path, before, after, mode, size, origin)
            VALUES (w, a, b, c, x, d, e, n, m, y);
    WHEN 'bound' THEN
        PERFORM covey_forget_versions(w, a, n);
    WHEN 'drop message' THEN
        DELETE FROM messages WHERE workspace_id = w AND session_id = a AND id = b;
        IF FOUND THEN
            DELETE FROM message_tails WHERE workspace_id = w AND message_id = b;
        END IF;
    WHEN 'drop session' THEN
        DELETE FROM sessions WHERE workspace_id = w AND id = a;
        DELETE FROM undos WHERE workspace_id = w AND session_id = a;
        DELETE FROM results WHERE workspace_id = w AND session_id = a;
        IF covey_drop_batch(w, a, n::integer) THEN
            INSERT INTO dropped_sessions VALUES (w, a) ON CONFLICT DO NOTHING;
        END IF;
    WHEN 'undo' THEN
        -- A session that was deleted meanwhile has no undos: one that is done afterwards leaves nothing.
        IF n = 0 OR EXISTS (SELECT 1 FROM sessions WHERE workspace_id = w AND id = b) THEN
            INSERT INTO undos VALUES (w, a, b, n = 1, x)
                ON CONFLICT (workspace_id, id) DO UPDATE SET done = excluded.done, value = excluded.value;
        END IF;
    WHEN 'workspace' THEN
        INSERT INTO workspaces (id, path, epoch, created_at) VALUES (a, b, n, m);
    END CASE;
    RETURN true;
END $$;

-- A group of changes. Gives for each whether it was left out, because its run is there already.
-- `logs_of`, `fences` and `lasts` name each workspace of the group once, in order, so that no two groups lock crosswise.
CREATE OR REPLACE FUNCTION covey_commit(
    me text, my_writer bigint, my_commit text, is_durable boolean, logs_of text[], fences bigint[], lasts bigint[],
    change_of integer[], of_change integer[], kinds text[], as_ text[], bs text[], cs text[], ds text[], es text[],
    ns bigint[], ms bigint[], xs bytea[], ys bytea[], event_of integer[], event_sessions text[], encoded bytea[]
) RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
    row record;
    place integer;
    heads bigint[] := lasts;
    left_out boolean[] := array_fill(false, ARRAY[cardinality(change_of)]);
BEGIN
    IF NOT is_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    FOR place IN 1 .. cardinality(logs_of) LOOP
        PERFORM 1 FROM logs WHERE workspace_id = logs_of[place] AND owner = me AND fence = fences[place]
            AND writer <= my_writer AND last_event = lasts[place] FOR UPDATE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the workspace % has another owner by now', logs_of[place] USING ERRCODE = 'CV001';
        END IF;
    END LOOP;
    FOR row IN SELECT * FROM unnest(of_change, kinds, as_, bs, cs, ds, es, ns, ms, xs, ys)
            WITH ORDINALITY AS writes (number, kind, a, b, c, d, e, n, m, x, y, ordinality) ORDER BY ordinality LOOP
        CONTINUE WHEN left_out[row.number];
        IF NOT covey_write(me, logs_of[change_of[row.number]], row.kind, row.a, row.b, row.c, row.d, row.e, row.n, row.m,
                row.x, row.y) THEN
            left_out[row.number] := true;
        END IF;
    END LOOP;
    FOR row IN SELECT number, array_agg(session ORDER BY ordinality) AS sessions, array_agg(value ORDER BY ordinality) AS vals
            FROM unnest(event_of, event_sessions, encoded) WITH ORDINALITY AS events (number, session, value, ordinality)
            GROUP BY number ORDER BY number LOOP
        CONTINUE WHEN left_out[row.number];
        place := change_of[row.number];
        INSERT INTO events SELECT logs_of[place], heads[place] + ordinality, session, value
            FROM unnest(row.sessions, row.vals) WITH ORDINALITY AS new (session, value, ordinality);
        heads[place] := heads[place] + cardinality(row.sessions);
    END LOOP;
    FOR place IN 1 .. cardinality(logs_of) LOOP
        UPDATE logs SET last_event = heads[place], last_commit = my_commit, last_left_out = left_out, writer = my_writer
            WHERE workspace_id = logs_of[place];
    END LOOP;
    RETURN left_out;
END $$;

-- Become the owner of a workspace that nobody owns, or whose owner is gone. Gives the fence, and what became of the owner
-- before; no row: somebody has it, or a newer Covey had.
-- A lease that has only run out counts once somebody has seen the store for a whole lease: after an outage of the
-- store every lease has run out, and nobody is to be robbed. A node that was declared dead is known to be gone.
CREATE OR REPLACE FUNCTION covey_claim(me text, w text, my_version integer, lease interval)
RETURNS TABLE (new_fence bigint, was text) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO logs (workspace_id) VALUES (w) ON CONFLICT DO NOTHING;
    SELECT CASE WHEN l.fence = 0 THEN 'new' WHEN l.owner IS NULL THEN 'released' WHEN l.owner = me THEN 'own'
            WHEN n.lease_until > '-infinity' THEN 'lease' ELSE 'killed' END
        INTO was FROM logs l LEFT JOIN nodes n ON n.id = l.owner WHERE l.workspace_id = w FOR UPDATE OF l;
    UPDATE logs SET owner = me, fence = fence + 1, writer = 0, min_version = my_version
        WHERE workspace_id = w AND min_version <= my_version AND (
            was IN ('new', 'released', 'own', 'killed')
            OR (NOT EXISTS (SELECT 1 FROM nodes WHERE id = owner AND lease_until > now())
                AND EXISTS (SELECT 1 FROM nodes WHERE lease_until > now() AND steady_since < now() - lease)))
        RETURNING fence INTO new_fence;
    IF new_fence IS NOT NULL THEN
        PERFORM covey_note_timeline(w);
        RETURN NEXT;
    END IF;
END $$;

-- A database that failed over to a standby which had not everything has forgotten what it acknowledged: the numbers of
-- lost events are given out again. So a workspace begins a new epoch when it is claimed for the first time after that.
CREATE OR REPLACE FUNCTION covey_note_timeline(w text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now_on integer := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer;
    before record;
BEGIN
    SELECT timeline, is_synced INTO before FROM logs WHERE workspace_id = w;
    IF before.timeline <> now_on AND NOT before.is_synced THEN
        UPDATE workspaces SET epoch = greatest(epoch + 1, extract(epoch FROM now())::bigint) WHERE id = w;
    END IF;
    UPDATE logs SET timeline = now_on, is_synced = current_setting('synchronous_standby_names') <> ''
            AND current_setting('synchronous_commit') NOT IN ('off', 'local') WHERE workspace_id = w;
END $$;

-- The row of a directory, made if there is none: also if two nodes ask at once.
CREATE OR REPLACE FUNCTION covey_workspace_at(new_id text, new_path text, new_epoch bigint, now_s bigint)
RETURNS TABLE (found_id text, found_path text, found_epoch bigint, found_created_at bigint) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO workspaces (id, path, epoch, created_at) VALUES (new_id, new_path, new_epoch, now_s)
        ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT id, path, epoch, created_at FROM workspaces WHERE path = new_path;
END $$;
