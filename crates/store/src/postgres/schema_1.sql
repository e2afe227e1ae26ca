-- Format 1: the tables, and the functions that write them.
--
-- Owners and agents are interned: a party is an owner and an agent. Texts are compared by their bytes; whatever may hold a NUL
-- is bytea. States have the codes of the SQLite store: 0 to 3 are open, 4 is completed, 5 to 7 are the other terminal states.
-- Times are milliseconds since 1970 by the clocks of the nodes. Those of the type timestamptz are by the database's own clock.

CREATE TABLE parties (
    no    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner bytea NOT NULL,
    agent text COLLATE "C" NOT NULL
);
-- By a digest, since an owner may be longer than an index takes.
CREATE UNIQUE INDEX parties_owner ON parties (sha256(owner), agent);

-- A server that has opened the store. A restart is another node with the same name.
CREATE TABLE nodes (
    no      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    version text NOT NULL,
    started timestamptz NOT NULL DEFAULT now(),
    beat    timestamptz NOT NULL DEFAULT now(),
    grace   interval NOT NULL,
    listens   boolean NOT NULL DEFAULT false,
    -- The ids of its agents.
    agents  text[] NOT NULL DEFAULT '{}',
    -- When it left in order, or was declared dead. A node that has ended never comes back under its number.
    ended   timestamptz,
    is_dead boolean NOT NULL DEFAULT false
);
-- None of `beat`, which changes all the time.
CREATE INDEX nodes_name ON nodes (name);
CREATE INDEX nodes_alive ON nodes (no) WHERE ended IS NULL;

CREATE SEQUENCE task_numbers;

-- `head` is what a list shows, and while `in_row` has the number of its events the whole log (`crate::head`).
-- `node` and `epoch` are the owner; `is_left` marks a task without one that has something to run, `left_at` since when; `home`
-- names the node that it waits for. `last_append` is the id of the last append, so that an append with an unknown outcome can be sent again.
CREATE TABLE tasks (
    no          bigint PRIMARY KEY,
    party       int NOT NULL,
    id          text COLLATE "C" NOT NULL,
    context     text COLLATE "C" NOT NULL,
    born        smallint NOT NULL,
    state       smallint NOT NULL,
    time        bigint NOT NULL,
    turn_over   boolean NOT NULL,
    created     bigint NOT NULL,
    in_row      int,
    head        bytea,
    node        bigint,
    epoch       bigint NOT NULL,
    is_left     boolean NOT NULL,
    left_at     timestamptz,
    home        text COLLATE "C",
    last_append bigint NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX tasks_id ON tasks (id, party);
CREATE INDEX tasks_time ON tasks (party, time, id);
CREATE INDEX tasks_state ON tasks (party, state, time, id) WHERE state <> 4;
CREATE INDEX tasks_context ON tasks (context, party, time);
CREATE INDEX tasks_open ON tasks (no) WHERE state < 4;
CREATE INDEX tasks_waiting ON tasks (time, no) WHERE state IN (2, 3);
CREATE INDEX tasks_settled ON tasks (time, no) WHERE state >= 4;
CREATE INDEX tasks_left ON tasks (context, party, no) WHERE is_left;
CREATE INDEX tasks_owned ON tasks (node) WHERE node IS NOT NULL;

-- The events of one append, concatenated, under the number of the last.
CREATE TABLE events (
    no   bigint NOT NULL,
    seq  bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (no, seq)
);
CREATE TABLE snapshots (no bigint PRIMARY KEY, seq bigint NOT NULL, body bytea NOT NULL, artifacts bytea);
CREATE TABLE inbox (
    no      bigint NOT NULL,
    place   bigint NOT NULL,
    body    bytea NOT NULL,
    answers boolean NOT NULL,
    PRIMARY KEY (no, place)
);
CREATE TABLE keys (
    party int NOT NULL,
    key   text COLLATE "C" NOT NULL,
    no    bigint NOT NULL,
    PRIMARY KEY (party, key)
);
CREATE INDEX keys_no ON keys (no);
-- `home` is the name of the node that wrote the state, which is where the session is that it tells of.
CREATE TABLE agent_state (
    party   int NOT NULL,
    context text COLLATE "C" NOT NULL,
    state   bytea NOT NULL,
    home    text COLLATE "C" NOT NULL,
    PRIMARY KEY (party, context)
);
CREATE TABLE task_state (no bigint PRIMARY KEY, state bytea NOT NULL);
CREATE TABLE controls (
    no               bigint PRIMARY KEY,
    cancel_requested boolean NOT NULL DEFAULT false,
    attempts         int NOT NULL DEFAULT 0
);

-- The contexts that have a run, or that a node has claimed a task of to run it, each with its task.
CREATE TABLE busy_contexts (
    party     int NOT NULL,
    context   text COLLATE "C" NOT NULL,
    no        bigint NOT NULL,
    has_begun boolean NOT NULL,
    PRIMARY KEY (party, context)
);
CREATE INDEX busy_contexts_no ON busy_contexts (no);

-- Sends whose tasks have an owner, by a digest of their message.
CREATE TABLE sends_in_flight (
    party  int NOT NULL,
    digest bytea NOT NULL,
    no     bigint NOT NULL,
    PRIMARY KEY (party, digest)
);
CREATE INDEX sends_in_flight_no ON sends_in_flight (no);

-- How many tasks there are, kept by each writer of each node in rows of its own, so that writers never wait for each other.
-- The sum counts.
CREATE TABLE tallies (
    party  int NOT NULL,
    state  smallint NOT NULL,
    node   bigint NOT NULL,
    writer smallint NOT NULL,
    n      bigint NOT NULL,
    PRIMARY KEY (party, state, node, writer)
) WITH (fillfactor = 50);

-- Webhooks (`crate::outbox`). Those with something to send belong to a node, which alone sends to them.
CREATE TABLE webhooks (
    number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    no            bigint NOT NULL,
    id            text COLLATE "C" NOT NULL,
    url           text NOT NULL,
    receiver      text COLLATE "C" NOT NULL,
    secrets       bytea NOT NULL,
    dialect       smallint NOT NULL,
    all_events    boolean NOT NULL,
    sent          bigint NOT NULL,
    due           bigint,
    attempts      int NOT NULL DEFAULT 0,
    failing_since bigint,
    reason        text,
    node          bigint
);
CREATE UNIQUE INDEX webhooks_id ON webhooks (no, id);
CREATE INDEX webhooks_due ON webhooks (node, receiver, due) WHERE due IS NOT NULL;
CREATE TABLE given_up (
    number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    no       bigint NOT NULL,
    id       text COLLATE "C" NOT NULL,
    event    bigint NOT NULL,
    attempts int NOT NULL,
    reason   text NOT NULL,
    time     bigint NOT NULL,
    due      bigint,
    node     bigint
);
CREATE INDEX given_up_id ON given_up (no, id);
CREATE INDEX given_up_due ON given_up (node, due) WHERE due IS NOT NULL;

CREATE TABLE audit (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    time    bigint NOT NULL,
    caller  bytea NOT NULL,
    peer    text,
    action  text NOT NULL,
    agent   text,
    task    text,
    no      bigint,
    owner   bytea,
    refusal text,
    detail  text NOT NULL
);

-- Calls for tasks that another node owns (`crate::cluster`), under numbers that their senders choose. After `expires` nobody does
-- what is asked; a sender that waits moves that on. A row is removed by what was asked, or by the sender, for which a missing row
-- means that it was done; those that nobody waits for any more are removed a minute later.
CREATE TABLE forwarded (
    number  bigint PRIMARY KEY,
    no      bigint NOT NULL,
    call    bytea NOT NULL,
    answer  bytea,
    sent    timestamptz NOT NULL DEFAULT now(),
    expires timestamptz NOT NULL
);
CREATE INDEX forwarded_no ON forwarded (no);

CREATE TABLE probe (no int PRIMARY KEY, body bytea NOT NULL);

-- Stores a group of appends. One row of the first arrays is an append; packs and side rows say which append they belong to, by
-- its place, which begins with 1. Each append is stored whole or not at all, and a refused one costs its neighbours nothing.
-- The result has a row for each append, in order, and a last row that tells of all of them whether webhooks are due, and whether
-- tasks that were left may begin.
--
-- Each statement in here costs more than the rows that it touches. So what can be done for all appends at once is done at the
-- end, and a new task is looked for only where its rows could not tell. Plans are made once, when tables may be empty, and kept:
-- without enable_seqscan = off they would read tables whole that have grown since.
--
-- The transaction that has locked a task may be that of a frozen node, so nobody waits for it: the append gets 5, its neighbours are
-- stored, and its writer sends it again. Other locks, such as that of a key, are waited for until lock_timeout; then nothing
-- of the group is stored, and its writer sends each append alone.
--
-- | result | meaning                                                              | detail            |
-- |--------|----------------------------------------------------------------------|-------------------|
-- | 0      | stored                                                               |                   |
-- | 1      | the task has changed meanwhile, or is not there                      |                   |
-- | 2      | a task with this id, key or digest exists                            | the id of the task |
-- | 3      | another node owns the task                                           | the name of the node |
-- | 4      | the context has a run, or the agent has as many runs as it may have  | the id of the task, or null |
-- | 5      | not stored: another transaction has locked the row of the task       |                   |
-- | -1     | the last row                                                         |                   |
CREATE FUNCTION append_1(
    my_node bigint, my_name text, my_writer smallint,
    is_retry boolean,              -- the group was sent before, and nobody knows whether it was stored
    ids bigint[],                  -- unique among all appends of all nodes
    numbers bigint[],              -- null: a new task
    afters bigint[], lasts bigint[],
    epochs bigint[],               -- null: this node becomes the owner
    begins boolean[], most_runs int[],
    thens smallint[],              -- 0: keep, 1: rest, 2: leave
    homes text[],
    -- of a new task
    partys int[], task_ids text[], contexts text[], borns smallint[], createds bigint[], sent_keys text[], digests bytea[],
    -- the new status, if there is one
    states smallint[], times bigint[], turn_overs boolean[],
    has_status boolean[], has_later boolean[],
    -- the events, if they may fit into the row; else there are packs
    counts int[], logs bytea[],
    head_changes smallint[],       -- 0: keep, 1: extend, 2: replace, 3: drop
    heads bytea[],
    snapshots_of bytea[], artifacts_of bytea[], is_large boolean[],
    has_side_rows boolean[],
    pack_of int[], pack_last bigint[], pack_body bytea[],
    -- 1: add to the inbox (number 1: answers a question), 2: take so many, 3: take at this place, 4: agent state, 5: task state,
    -- 6: key (party: its sender's), 7: cancel requested, 8: attempts, 9: webhook (text: JSON), 10: audit (text: JSON),
    -- 11: forwarded call is done, 12: digest of a message in flight
    side_of int[], side_kind smallint[], side_number bigint[], side_party int[], side_text text[], side_body bytea[],
    my_time bigint,                -- now, by the clock of the node
    waits_briefly boolean          -- an append of this group may have to wait for a lock
) RETURNS TABLE (result smallint, task_no bigint, new_epoch bigint, taken_bytes bigint, is_due boolean, wakes_left boolean,
    detail text)
LANGUAGE plpgsql SET enable_seqscan = off SET lock_timeout = '2s' AS $$
DECLARE
    a record;
    side record;
    place int := 0;
    row_before tasks%ROWTYPE;
    last_seq bigint;
    other bigint;
    party_of int;
    context_of text;
    body_length bigint;
    new_in_row int;
    new_head bytea;
    goes_to_log boolean;
    is_counted boolean;            -- more counts than who has the context
    has_left boolean;              -- some task is left; null: nobody has looked yet
    may_wake_left boolean := false;
    later bigint[] := '{}';        -- tasks with events that webhooks may be due for
    later_status boolean[] := '{}';
    settled bigint[] := '{}';
    idle bigint[] := '{}';         -- tasks that have no run any more
    rested bigint[] := '{}';
    tally_party int[] := '{}';
    tally_state smallint[] := '{}';
    tally_by int[] := '{}';
BEGIN
    IF waits_briefly THEN
        PERFORM set_config('lock_timeout', '100ms', true);
    END IF;
    -- The locks of no_free_run_1, all at once and in the same order on all nodes, so that no two wait for each other.
    IF array_remove(most_runs, NULL) <> '{}' THEN
        PERFORM pg_advisory_xact_lock(counted.lock) FROM (
            SELECT DISTINCT runs_lock_1(parties.agent) AS lock
            FROM unnest(numbers, partys, most_runs) AS t(number, party, most)
            LEFT JOIN tasks ON tasks.no = t.number JOIN parties ON parties.no = coalesce(t.party, tasks.party)
            WHERE t.most IS NOT NULL ORDER BY 1) AS counted;
    END IF;
    FOR a IN SELECT * FROM unnest(ids, numbers, afters, lasts, epochs, begins, most_runs, thens, homes, partys, task_ids,
            contexts, borns, createds, sent_keys, digests, states, times, turn_overs, has_status, has_later, counts, logs,
            head_changes, heads, snapshots_of, artifacts_of, is_large, has_side_rows)
        AS t(id, number, after_seq, last_seq, epoch, begins_run, most, then_what, home, party, task_id, context, born, created,
            sent_key, digest, state, time, turn_over, has_status, has_later, count, log, head_change, head, snapshot,
            artifacts, large, sides)
    LOOP
        place := place + 1;
        result := 0; taken_bytes := 0; is_due := false; wakes_left := false; detail := NULL; task_no := a.number; new_epoch := 0;
        goes_to_log := false;
        -- What an earlier append of the group has freed, this one may take.
        IF idle <> '{}' AND (a.number IS NULL OR a.begins_run) THEN
            DELETE FROM busy_contexts AS busy WHERE busy.no = ANY (idle);
            DELETE FROM sends_in_flight AS sends WHERE sends.no = ANY (rested);
            idle := '{}'; rested := '{}';
        END IF;
        IF a.begins_run AND a.number IS NULL AND has_left IS NULL THEN
            has_left := EXISTS (SELECT FROM tasks WHERE is_left);
        END IF;

        IF a.number IS NULL THEN
            party_of := a.party;
            context_of := a.context;
            -- Where a row of its own will tell, nobody looks for another one first.
            IF is_retry OR a.sent_key IS NOT NULL THEN
                SELECT tasks.* INTO row_before FROM tasks WHERE id = a.task_id AND party = a.party;
                -- An append with an unknown outcome is sent again. If another node has taken the task since, this one owns nothing.
                IF row_before.last_append = a.id THEN
                    task_no := row_before.no; is_due := a.has_later;
                    new_epoch := CASE WHEN a.then_what <> 0 OR row_before.node = my_node THEN row_before.epoch ELSE 0 END;
                    RETURN NEXT; CONTINUE;
                END IF;
                IF a.sent_key IS NOT NULL THEN
                    SELECT keys.no INTO other FROM keys WHERE keys.party = a.party AND keys.key = a.sent_key;
                    IF FOUND THEN
                        result := 2;
                        SELECT tasks.id INTO detail FROM tasks WHERE no = other;
                        RETURN NEXT; CONTINUE;
                    END IF;
                END IF;
                IF row_before.no IS NOT NULL THEN
                    result := 2; detail := a.task_id;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;
            is_counted := a.begins_run AND (has_left OR a.most IS NOT NULL);
            IF a.digest IS NOT NULL AND (a.then_what = 1 OR is_counted) THEN
                SELECT sends.no INTO other FROM sends_in_flight AS sends WHERE sends.party = a.party AND sends.digest = a.digest;
                IF FOUND THEN
                    result := 2;
                    SELECT tasks.id INTO detail FROM tasks WHERE no = other;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;
            IF a.begins_run AND (a.then_what = 1 OR is_counted) THEN
                IF is_counted THEN
                    other := no_free_run_1(a.party, a.context, NULL, a.most);
                ELSE
                    SELECT busy.no INTO other FROM busy_contexts AS busy
                        WHERE busy.party = a.party AND busy.context = a.context;
                END IF;
                IF other IS NOT NULL THEN
                    result := 4;
                    SELECT tasks.id INTO detail FROM tasks WHERE no = other AND context = a.context AND party = a.party;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;
            task_no := nextval('task_numbers');
            new_epoch := 1;
            -- Another node may be creating the same task, or using the same key; then these wait for its commit. The task comes
            -- first, and goes again if its key is taken.
            new_in_row := CASE WHEN a.log IS NOT NULL AND length(a.log) <= 2048 AND a.count <= 16 THEN a.count END;
            goes_to_log := new_in_row IS NULL;
            INSERT INTO tasks (no, party, id, context, born, state, time, turn_over, created, in_row, head, node, epoch, is_left,
                    left_at, home, last_append)
                VALUES (task_no, a.party, a.task_id, a.context, a.born, a.state, a.time, a.turn_over, a.created, new_in_row,
                    CASE WHEN new_in_row IS NOT NULL THEN a.log WHEN a.head_change = 2 THEN a.head END,
                    CASE WHEN a.then_what = 0 THEN my_node END, new_epoch, a.then_what = 2,
                    CASE WHEN a.then_what = 2 THEN now() END, a.home, a.id)
                ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                -- It may have waited for the first attempt of this very append, whose connection was lost before its commit.
                SELECT tasks.* INTO row_before FROM tasks WHERE id = a.task_id AND party = a.party;
                IF row_before.last_append = a.id THEN
                    task_no := row_before.no; is_due := a.has_later;
                    new_epoch := CASE WHEN a.then_what <> 0 OR row_before.node = my_node THEN row_before.epoch ELSE 0 END;
                ELSE
                    result := 2; detail := a.task_id;
                END IF;
                RETURN NEXT; CONTINUE;
            END IF;
            IF a.sent_key IS NOT NULL THEN
                INSERT INTO keys (party, key, no) VALUES (a.party, a.sent_key, task_no) ON CONFLICT DO NOTHING;
                IF NOT FOUND THEN
                    DELETE FROM tasks WHERE no = task_no;
                    result := 2;
                    SELECT tasks.id INTO detail FROM keys JOIN tasks USING (no) WHERE keys.party = a.party AND keys.key = a.sent_key;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;
            IF a.then_what <> 1 THEN
                IF a.digest IS NOT NULL THEN
                    INSERT INTO sends_in_flight (party, digest, no) VALUES (a.party, a.digest, task_no) ON CONFLICT DO NOTHING;
                    IF NOT FOUND THEN
                        DELETE FROM keys WHERE no = task_no;
                        DELETE FROM tasks WHERE no = task_no;
                        result := 2;
                        SELECT tasks.id INTO detail FROM sends_in_flight AS sends JOIN tasks USING (no)
                            WHERE sends.party = a.party AND sends.digest = a.digest;
                        RETURN NEXT; CONTINUE;
                    END IF;
                END IF;
                IF a.begins_run THEN
                    INSERT INTO busy_contexts (party, context, no, has_begun) VALUES (a.party, a.context, task_no, true)
                        ON CONFLICT DO NOTHING;
                    IF NOT FOUND THEN
                        DELETE FROM sends_in_flight WHERE no = task_no;
                        DELETE FROM keys WHERE no = task_no;
                        DELETE FROM tasks WHERE no = task_no;
                        result := 4;
                        SELECT tasks.id INTO detail FROM busy_contexts AS busy JOIN tasks USING (no)
                            WHERE busy.party = a.party AND busy.context = a.context;
                        RETURN NEXT; CONTINUE;
                    END IF;
                END IF;
            END IF;
            tally_party := tally_party || a.party; tally_state := tally_state || a.state; tally_by := tally_by || 1;
        ELSE
            SELECT tasks.* INTO row_before FROM tasks WHERE no = a.number FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                result := CASE WHEN EXISTS (SELECT FROM tasks WHERE no = a.number) THEN 5 ELSE 1 END;
                RETURN NEXT; CONTINUE;
            END IF;
            -- An append with an unknown outcome is sent again. If another node has taken the task since, this one owns nothing.
            IF row_before.last_append = a.id THEN
                new_epoch := CASE WHEN a.then_what <> 0 OR row_before.node = my_node
                    THEN coalesce(a.epoch, row_before.epoch) ELSE 0 END;
                is_due := a.has_later;
                RETURN NEXT; CONTINUE;
            END IF;
            IF a.epoch IS NULL THEN
                -- Whoever drives a task, or begins a run of it, must know its inbox: not if it was left meanwhile, and not if
                -- this node has just claimed it for that inbox.
                IF (a.then_what = 0 OR a.begins_run) AND (row_before.is_left OR (row_before.node = my_node
                    AND EXISTS (SELECT FROM inbox WHERE inbox.no = a.number))) THEN
                    result := 1; RETURN NEXT; CONTINUE;
                END IF;
                IF row_before.node IS NOT NULL AND row_before.node <> my_node THEN
                    result := 3;
                    SELECT nodes.name INTO detail FROM nodes WHERE nodes.no = row_before.node;
                    RETURN NEXT; CONTINUE;
                END IF;
                new_epoch := row_before.epoch + 1;
            ELSE
                IF row_before.node IS DISTINCT FROM my_node OR row_before.epoch <> a.epoch THEN
                    result := 1; RETURN NEXT; CONTINUE;
                END IF;
                new_epoch := a.epoch;
            END IF;
            IF row_before.in_row IS NOT NULL THEN
                last_seq := row_before.in_row;
            ELSE
                SELECT events.seq INTO last_seq FROM events WHERE events.no = a.number ORDER BY events.seq DESC LIMIT 1;
                last_seq := coalesce(last_seq, 0);
            END IF;
            -- The same, where the row did not change: the last pack of the log is that of this append.
            IF is_retry AND a.epoch IS NOT NULL AND a.count > 0 AND last_seq = a.last_seq THEN
                IF EXISTS (
                    SELECT FROM events WHERE events.no = a.number AND events.seq = last_seq AND events.body = coalesce(a.log,
                        (SELECT p.body FROM unnest(pack_of, pack_last, pack_body) AS p(of_append, last, body)
                         WHERE p.of_append = place AND p.last = last_seq))) THEN
                    is_due := a.has_later;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;
            IF last_seq <> a.after_seq THEN
                result := 1; RETURN NEXT; CONTINUE;
            END IF;
            party_of := row_before.party;
            context_of := row_before.context;
            IF a.sides THEN
                -- The same message came through another node, and its task has not been at rest since. Both hold the task's lock.
                -- A node that owns the task knows its messages, and does not ask.
                IF a.epoch IS NULL AND EXISTS (SELECT FROM unnest(side_of, side_kind, side_body) AS s(of_append, kind, digest)
                    JOIN sends_in_flight AS sends ON sends.party = party_of AND sends.digest = s.digest AND sends.no = a.number
                    WHERE s.of_append = place AND s.kind = 12) THEN
                    result := 2; detail := row_before.id;
                    RETURN NEXT; CONTINUE;
                END IF;
                -- The sender of a forwarded call has taken it back, and sends it again, or waits for it no longer.
                IF EXISTS (SELECT FROM unnest(side_of, side_kind, side_number) AS s(of_append, kind, number)
                    WHERE s.of_append = place AND s.kind = 11 AND NOT EXISTS (SELECT FROM forwarded
                        WHERE forwarded.number = s.number AND forwarded.answer IS NULL AND forwarded.expires > now())) THEN
                    result := 2; detail := row_before.id;
                    RETURN NEXT; CONTINUE;
                END IF;
                SELECT keys.no INTO other FROM unnest(side_of, side_kind, side_party, side_text) AS s(of_append, kind, party, key)
                    JOIN keys ON keys.party = coalesce(s.party, party_of) AND keys.key = s.key
                    WHERE s.of_append = place AND s.kind = 6 LIMIT 1;
                IF FOUND THEN
                    result := 2;
                    SELECT tasks.id INTO detail FROM tasks WHERE no = other;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;
            -- Another node may use the same key since the look above; then this waits for its commit.
            IF a.sides AND 6 = ANY(side_kind) THEN
                INSERT INTO keys (party, key, no)
                    SELECT DISTINCT coalesce(s.party, party_of), s.key, a.number
                    FROM unnest(side_of, side_kind, side_party, side_text) AS s(of_append, kind, party, key)
                    WHERE s.of_append = place AND s.kind = 6 ORDER BY 1, 2
                    ON CONFLICT DO NOTHING;
                SELECT keys.no INTO other FROM unnest(side_of, side_kind, side_party, side_text) AS s(of_append, kind, party, key)
                    JOIN keys ON keys.party = coalesce(s.party, party_of) AND keys.key = s.key
                    WHERE s.of_append = place AND s.kind = 6 AND keys.no <> a.number LIMIT 1;
                IF FOUND THEN
                    PERFORM remove_keys_1(a.number, place, party_of, side_of, side_kind, side_party, side_text);
                    result := 2;
                    SELECT tasks.id INTO detail FROM tasks WHERE no = other;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;
            IF a.begins_run THEN
                other := no_free_run_1(party_of, context_of, a.number, a.most);
                IF other IS NULL AND a.then_what <> 1 THEN
                    INSERT INTO busy_contexts AS busy (party, context, no, has_begun)
                        VALUES (party_of, context_of, a.number, true)
                        ON CONFLICT (party, context) DO UPDATE SET has_begun = true WHERE busy.no = excluded.no;
                    IF NOT FOUND THEN
                        SELECT busy.no INTO other FROM busy_contexts AS busy
                            WHERE busy.party = party_of AND busy.context = context_of;
                    END IF;
                END IF;
                IF other IS NOT NULL THEN
                    PERFORM remove_keys_1(a.number, place, party_of, side_of, side_kind, side_party, side_text);
                    result := 4;
                    SELECT tasks.id INTO detail FROM tasks WHERE no = other AND context = context_of AND party = party_of;
                    RETURN NEXT; CONTINUE;
                END IF;
            END IF;

            new_in_row := row_before.in_row;
            new_head := row_before.head;
            IF a.count > 0 THEN
                IF row_before.in_row IS NOT NULL AND a.log IS NOT NULL AND length(row_before.head) + length(a.log) <= 2048
                    AND row_before.in_row + a.count <= 16 THEN
                    new_in_row := row_before.in_row + a.count;
                    new_head := row_before.head || a.log;
                ELSE
                    goes_to_log := true;
                    IF row_before.in_row IS NOT NULL THEN
                        IF row_before.in_row > 0 THEN
                            INSERT INTO events (no, seq, body) VALUES (a.number, row_before.in_row, row_before.head);
                        END IF;
                        new_in_row := NULL;
                    END IF;
                    new_head := CASE a.head_change
                        WHEN 1 THEN CASE WHEN length(new_head) + length(a.head) <= 4096 THEN new_head || a.head END
                        WHEN 2 THEN a.head
                        WHEN 3 THEN NULL
                        ELSE new_head END;
                END IF;
            END IF;
            IF a.state IS NOT NULL AND a.state <> row_before.state THEN
                tally_party := tally_party || party_of || party_of;
                tally_state := tally_state || row_before.state || a.state;
                tally_by := tally_by || -1 || 1;
            END IF;
            -- A chunk of a long log changes nothing in the row: the lock alone is enough.
            IF a.state IS NOT NULL OR a.then_what <> 0 OR a.epoch IS NULL OR new_in_row IS DISTINCT FROM row_before.in_row
                OR (a.count = 0 AND a.sides) OR (a.head_change <> 0 AND goes_to_log) THEN
                UPDATE tasks SET
                    state = coalesce(a.state, row_before.state), time = coalesce(a.time, row_before.time),
                    turn_over = coalesce(a.turn_over, row_before.turn_over), in_row = new_in_row, head = new_head,
                    node = CASE WHEN a.then_what = 0 THEN my_node END, epoch = new_epoch, is_left = a.then_what = 2,
                    left_at = CASE WHEN a.then_what <> 2 THEN NULL WHEN row_before.is_left THEN row_before.left_at ELSE now() END,
                    home = CASE WHEN a.then_what = 2 THEN a.home END, last_append = a.id
                    WHERE no = a.number;
            END IF;
        END IF;

        IF goes_to_log THEN
            IF a.log IS NOT NULL THEN
                INSERT INTO events (no, seq, body) VALUES (task_no, a.last_seq, a.log);
            ELSE
                INSERT INTO events (no, seq, body)
                    SELECT task_no, p.last, p.body FROM unnest(pack_of, pack_last, pack_body) AS p(of_append, last, body)
                    WHERE p.of_append = place;
            END IF;
        END IF;
        IF a.snapshot IS NOT NULL THEN
            INSERT INTO snapshots (no, seq, body, artifacts) VALUES (task_no, a.last_seq, a.snapshot, a.artifacts)
                ON CONFLICT (no) DO UPDATE SET seq = excluded.seq, body = excluded.body, artifacts = excluded.artifacts
                WHERE excluded.seq - snapshots.seq > 16 OR a.large;
        END IF;
        IF a.sides THEN
            FOR side IN SELECT * FROM unnest(side_of, side_kind, side_number, side_party, side_text, side_body)
                AS s(of_append, kind, number, party, text, body) WHERE s.of_append = place
            LOOP
                CASE side.kind
                WHEN 1 THEN
                    INSERT INTO inbox (no, place, body, answers)
                        SELECT task_no, coalesce(max(inbox.place), 0) + 1, side.body, side.number = 1 FROM inbox
                        WHERE inbox.no = task_no;
                WHEN 2, 3 THEN
                    WITH taken AS (
                        DELETE FROM inbox WHERE inbox.no = task_no AND inbox.place IN (
                            SELECT i.place FROM inbox AS i WHERE i.no = task_no ORDER BY i.place
                            LIMIT CASE WHEN side.kind = 2 THEN side.number ELSE 1 END
                            OFFSET CASE WHEN side.kind = 3 THEN side.number ELSE 0 END)
                        RETURNING length(inbox.body) AS bytes)
                    SELECT taken_bytes + coalesce(sum(taken.bytes), 0) INTO taken_bytes FROM taken;
                WHEN 4 THEN
                    IF side.body IS NULL THEN
                        DELETE FROM agent_state WHERE agent_state.party = party_of AND agent_state.context = context_of;
                    ELSE
                        INSERT INTO agent_state (party, context, state, home) VALUES (party_of, context_of, side.body, my_name)
                            ON CONFLICT (party, context) DO UPDATE SET state = excluded.state, home = excluded.home;
                    END IF;
                WHEN 5 THEN
                    IF side.body IS NULL THEN
                        DELETE FROM task_state WHERE task_state.no = task_no;
                    ELSE
                        INSERT INTO task_state (no, state) VALUES (task_no, side.body)
                            ON CONFLICT (no) DO UPDATE SET state = excluded.state;
                    END IF;
                WHEN 6 THEN
                    INSERT INTO keys (party, key, no) VALUES (coalesce(side.party, party_of), side.text, task_no)
                        ON CONFLICT DO NOTHING;
                WHEN 7 THEN
                    INSERT INTO controls (no, cancel_requested) VALUES (task_no, true)
                        ON CONFLICT (no) DO UPDATE SET cancel_requested = true;
                WHEN 8 THEN
                    IF side.number = 0 THEN
                        DELETE FROM controls WHERE controls.no = task_no AND NOT controls.cancel_requested;
                        UPDATE controls SET attempts = 0 WHERE controls.no = task_no;
                    ELSE
                        INSERT INTO controls (no, attempts) VALUES (task_no, side.number)
                            ON CONFLICT (no) DO UPDATE SET attempts = excluded.attempts;
                    END IF;
                WHEN 9 THEN
                    DELETE FROM webhooks WHERE webhooks.no = task_no AND webhooks.id = side.text::json->>'id';
                    INSERT INTO webhooks (no, id, url, receiver, secrets, dialect, all_events, sent)
                        VALUES (task_no, side.text::json->>'id', side.text::json->>'url', side.text::json->>'receiver', side.body,
                            (side.text::json->>'dialect')::smallint, (side.text::json->>'all_events')::boolean, a.after_seq);
                WHEN 10 THEN
                    INSERT INTO audit (time, caller, peer, action, agent, task, no, owner, refusal, detail)
                        VALUES (side.number, decode(side.text::json->>'caller', 'hex'), side.text::json->>'peer',
                            side.text::json->>'action', side.text::json->>'agent', side.text::json->>'task', task_no,
                            decode(side.text::json->>'owner', 'hex'), side.text::json->>'refusal', side.text::json->>'detail');
                WHEN 11 THEN
                    DELETE FROM forwarded WHERE forwarded.number = side.number;
                WHEN 12 THEN
                    INSERT INTO sends_in_flight (party, digest, no) VALUES (party_of, side.body, task_no) ON CONFLICT DO NOTHING;
                END CASE;
            END LOOP;
        END IF;
        IF a.has_later AND (a.number IS NOT NULL OR a.sides) THEN
            later := later || task_no; later_status := later_status || a.has_status;
        END IF;
        IF a.state >= 4 AND (a.number IS NOT NULL OR a.sides) THEN
            settled := settled || task_no;
        END IF;
        -- A message that came while the task was left needs a turn.
        IF a.then_what = 1 AND a.number IS NOT NULL AND coalesce(a.state, row_before.state) < 4
            AND EXISTS (SELECT FROM inbox WHERE inbox.no = task_no) THEN
            UPDATE tasks SET is_left = true, left_at = now() WHERE no = task_no;
            has_left := true; may_wake_left := true;
        END IF;
        IF a.then_what <> 0 AND a.number IS NOT NULL THEN
            idle := idle || task_no;
            IF a.then_what = 1 THEN
                rested := rested || task_no;
            END IF;
        END IF;
        IF a.then_what = 2 THEN
            has_left := true; may_wake_left := true;
        END IF;
        -- The end of a run, or a question, may let a task begin that was left.
        may_wake_left := may_wake_left OR a.then_what = 1 OR coalesce(a.state IN (2, 3), false);
        RETURN NEXT;
    END LOOP;
    IF tally_party <> '{}' THEN
        INSERT INTO tallies (party, state, node, writer, n)
            SELECT t.party, t.state, my_node, my_writer, sum(t.by)
            FROM unnest(tally_party, tally_state, tally_by) AS t(party, state, by) GROUP BY 1, 2 HAVING sum(t.by) <> 0 ORDER BY 1, 2
            ON CONFLICT (party, state, node, writer) DO UPDATE SET n = tallies.n + excluded.n;
    END IF;
    IF idle <> '{}' THEN
        DELETE FROM busy_contexts AS busy WHERE busy.no = ANY (idle);
        DELETE FROM sends_in_flight AS sends WHERE sends.no = ANY (rested);
    END IF;
    IF settled <> '{}' THEN
        DELETE FROM controls WHERE controls.no = ANY (settled);
    END IF;
    result := -1; is_due := false; wakes_left := false; detail := NULL;
    IF later <> '{}' THEN
        -- A webhook with nothing to send is nobody's, so this node takes it, and need not wake another one. It is due at once, by
        -- the clock of this node; the time of the status may be by that of a node whose clock is ahead.
        UPDATE webhooks SET due = least((SELECT tasks.time FROM tasks WHERE tasks.no = webhooks.no), my_time), node = my_node
            FROM unnest(later, later_status) AS l(no, has_status)
            WHERE webhooks.no = l.no AND webhooks.due IS NULL AND (l.has_status OR webhooks.all_events);
        is_due := FOUND;
    END IF;
    IF may_wake_left THEN
        wakes_left := EXISTS (SELECT FROM tasks WHERE is_left);
    END IF;
    RETURN NEXT;
END;
$$;

-- Removes the keys that an append has just added to a task and that is refused.
CREATE FUNCTION remove_keys_1(of_no bigint, of_place int, of_party int, side_of int[], side_kind smallint[], side_party int[],
    side_text text[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM keys USING unnest(side_of, side_kind, side_party, side_text) AS s(of_append, kind, party, key)
    WHERE s.of_append = of_place AND s.kind = 6 AND keys.no = of_no AND keys.party = coalesce(s.party, of_party) AND keys.key = s.key
$$;

-- The number of the lock of those who count the runs of an agent.
CREATE FUNCTION runs_lock_1(of_agent text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended('sabir runs ' || of_agent, 0)
$$;

-- The task that keeps another one of this context from beginning a run; null: it may begin. Where the agent has as many runs as
-- it may have, any of them. Runs that wait for an answer do not count.
CREATE FUNCTION no_free_run_1(of_party int, of_context text, own_no bigint, most int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    other bigint;
    runs bigint;
BEGIN
    SELECT busy.no INTO other FROM busy_contexts AS busy
        WHERE busy.party = of_party AND busy.context = of_context AND busy.no IS DISTINCT FROM own_no;
    IF FOUND THEN
        RETURN other;
    END IF;
    -- Older tasks of the context that were left go first.
    SELECT min(tasks.no) INTO other FROM tasks
        WHERE tasks.is_left AND tasks.context = of_context AND tasks.party = of_party
            AND (own_no IS NULL OR tasks.no < own_no);
    IF other IS NOT NULL THEN
        RETURN other;
    END IF;
    IF most IS NULL THEN
        RETURN NULL;
    END IF;
    -- Whoever counts runs of this agent waits for the others who do, until their commit.
    PERFORM pg_advisory_xact_lock(runs_lock_1((SELECT agent FROM parties WHERE parties.no = of_party)));
    SELECT count(*), min(busy.no) INTO runs, other FROM busy_contexts AS busy
        JOIN tasks ON tasks.no = busy.no AND tasks.state IN (0, 1)
        JOIN parties ON parties.no = busy.party AND parties.agent = (SELECT agent FROM parties WHERE parties.no = of_party)
        WHERE busy.has_begun AND busy.no IS DISTINCT FROM own_no;
    RETURN CASE WHEN runs >= most THEN other END;
END;
$$;

-- The functions for webhooks hold the lock of the task's row, as an append does. So no append comes between a look at the end of the
-- log and a change that depends on it, and nobody waits for webhooks of the same task in another order. They are functions, so that
-- the lock is held for one statement only, whatever happens to the node. They wait for it for a little longer than a transaction
-- may be idle (`Connections::begin`).

-- Notes that events were handled. The result says whether there are more to send; null: there was nothing to send, or
-- another node sends it.
CREATE FUNCTION advance_webhook_1(
    my_node bigint,                -- null: whichever node sends to it
    of_number bigint,
    handled bigint,                -- the last event that is handled; null: the last of the log
    give_up_reason text,           -- null: it was delivered, or it is discarded
    my_time bigint
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off SET lock_timeout = '8s' AS $$
DECLARE
    of_no bigint;
    last_event bigint;
    hook webhooks%ROWTYPE;
BEGIN
    SELECT tasks.no INTO of_no FROM webhooks JOIN tasks ON tasks.no = webhooks.no
        WHERE webhooks.number = of_number AND webhooks.due IS NOT NULL AND (my_node IS NULL OR webhooks.node = my_node)
        FOR NO KEY UPDATE OF tasks;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT webhooks.* INTO hook FROM webhooks
        WHERE webhooks.number = of_number AND webhooks.due IS NOT NULL AND (my_node IS NULL OR webhooks.node = my_node)
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last_event := last_event_1(of_no);
    IF give_up_reason IS NOT NULL THEN
        INSERT INTO given_up (no, id, event, attempts, reason, time)
            VALUES (hook.no, hook.id, handled, hook.attempts + 1, give_up_reason, my_time);
    END IF;
    -- What was appended meanwhile is due at once. After an event that was given up, the webhook fails until something is delivered.
    UPDATE webhooks SET sent = greatest(hook.sent, coalesce(handled, last_event)),
        due = CASE WHEN last_event > handled THEN my_time END, attempts = 0, reason = give_up_reason,
        failing_since = CASE WHEN give_up_reason IS NOT NULL THEN coalesce(hook.failing_since, my_time) END
        WHERE webhooks.number = of_number;
    RETURN coalesce(last_event > handled, false);
END;
$$;

-- Sets a webhook, or replaces the one with this id. The result is 0: there is no such task; 1: it has too many; 2: set;
-- 3: set, and something is due. The number is a new one, so that the outcome of a delivery to the old URL is not taken for
-- one to this.
CREATE FUNCTION set_webhook_1(
    my_node bigint, of_no bigint, new_id text, new_url text, new_receiver text, new_secrets bytea, new_dialect smallint,
    new_all_events boolean, most bigint, my_time bigint
) RETURNS int LANGUAGE plpgsql SET enable_seqscan = off SET lock_timeout = '8s' AS $$
DECLARE
    of_state smallint;
    last_event bigint;
    new_sent bigint;
    new_due bigint;
    old webhooks%ROWTYPE;
BEGIN
    SELECT tasks.state INTO of_state FROM tasks WHERE tasks.no = of_no FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    last_event := last_event_1(of_no);
    DELETE FROM webhooks WHERE webhooks.no = of_no AND webhooks.id = new_id RETURNING * INTO old;
    IF old.due IS NOT NULL THEN
        -- What the old URL has not got goes to the new one.
        new_sent := old.sent;
        new_due := my_time;
    ELSIF old.number IS NULL AND (SELECT count(*) FROM webhooks WHERE webhooks.no = of_no) >= most THEN
        RETURN 1;
    ELSIF of_state >= 4 THEN
        new_sent := greatest(last_event - 1, 0);
        new_due := my_time;
    ELSE
        new_sent := last_event;
    END IF;
    INSERT INTO webhooks (no, id, url, receiver, secrets, dialect, all_events, sent, due, node)
        VALUES (of_no, new_id, new_url, new_receiver, new_secrets, new_dialect, new_all_events, new_sent, new_due,
            CASE WHEN new_due IS NOT NULL THEN my_node END);
    RETURN CASE WHEN new_due IS NULL THEN 2 ELSE 3 END;
END;
$$;

-- Removes one webhook of a task, or all, with everything that is to be sent to it or was given up.
CREATE FUNCTION remove_webhooks_1(of_no bigint, of_id text) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET lock_timeout = '8s' AS $$
BEGIN
    PERFORM FROM tasks WHERE tasks.no = of_no FOR NO KEY UPDATE;
    DELETE FROM given_up WHERE given_up.no = of_no AND (of_id IS NULL OR given_up.id = of_id);
    DELETE FROM webhooks WHERE webhooks.no = of_no AND (of_id IS NULL OR webhooks.id = of_id);
END;
$$;

-- The number of the last event of a task.
CREATE FUNCTION last_event_1(of_no bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(tasks.in_row::bigint,
        (SELECT events.seq FROM events WHERE events.no = tasks.no ORDER BY events.seq DESC LIMIT 1), 0)
    FROM tasks WHERE tasks.no = of_no
$$;
