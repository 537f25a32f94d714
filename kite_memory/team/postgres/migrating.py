"""Creation and migration of the team's database. It needs the right to create objects, which serving does not."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import psycopg
from psycopg import errors, sql

from kite_memory.errors import KiteError, StateNewer
from kite_memory.recall.embedder import Space
from kite_memory.team.postgres import audit
from kite_memory.team.postgres.connections import ROLE, Connection, SchemaMissing, connect, unavailable

_VISIBLE_AT_FIRST: Final = """
    tenant = (SELECT kite.tenant())
    AND scope = ANY ((SELECT kite.scopes())::text[])
    AND ((SELECT kite.all_projects()) OR project = ANY ((SELECT kite.projects())::text[])
         OR (project = '' AND scope IN ('global', 'shared')))
"""
VISIBLE: Final = f"""{_VISIBLE_AT_FIRST}
    AND (scope <> 'global' OR person = (SELECT kite.person()) OR (SELECT kite.everybody()))
"""
"""`Grant.sees` in SQL. Each function is evaluated once per statement, not per row."""

_SETTINGS = """
CREATE FUNCTION kite.tenant() RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT nullif(current_setting('kite.tenant', true), '') $$;
CREATE FUNCTION kite.scopes() RETURNS text[] LANGUAGE sql STABLE AS
    $$ SELECT string_to_array(nullif(current_setting('kite.scopes', true), ''), ',') $$;
CREATE FUNCTION kite.all_projects() RETURNS boolean LANGUAGE sql STABLE AS
    $$ SELECT coalesce(current_setting('kite.all_projects', true) = 'on', false) $$;
CREATE FUNCTION kite.projects() RETURNS text[] LANGUAGE sql STABLE AS
    $$ SELECT ARRAY(SELECT json_array_elements_text(nullif(current_setting('kite.projects', true), '')::json)) $$;
CREATE FUNCTION kite.writes() RETURNS boolean LANGUAGE sql STABLE AS
    $$ SELECT coalesce(current_setting('kite.writes', true) = 'on', false) $$;
"""

_TABLES = """
CREATE TABLE kite.note (
    tenant text NOT NULL CHECK (tenant <> ''),
    id text NOT NULL,
    path text NOT NULL,
    kind text NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    scope text NOT NULL CHECK (scope IN ('global', 'project', 'session', 'shared')),
    project text NOT NULL,
    session text NOT NULL,
    tags text[] NOT NULL,
    status text NOT NULL,
    more json NOT NULL,
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL,
    expires timestamptz,
    created_by text NOT NULL,
    conversation text NOT NULL,
    key text COLLATE "C" NOT NULL DEFAULT '',
    value json,
    version bigint NOT NULL DEFAULT 1,
    first_version bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX memory ON kite.note (tenant, key, scope, project, session) WHERE key <> '';
CREATE INDEX note_path ON kite.note (tenant, path);
CREATE INDEX note_recent ON kite.note (tenant, project, updated DESC);
CREATE INDEX note_shared ON kite.note (tenant, updated DESC) WHERE scope = 'shared';
CREATE INDEX note_alike ON kite.note (tenant, project, md5(body)) WHERE key = '';

CREATE TABLE kite.memory_version (
    tenant text NOT NULL,
    key text COLLATE "C" NOT NULL,
    scope text NOT NULL,
    project text NOT NULL,
    session text NOT NULL,
    version bigint NOT NULL,
    at timestamptz NOT NULL,
    author text NOT NULL,
    value json NOT NULL,
    PRIMARY KEY (tenant, key, scope, project, session, version)
);

CREATE TABLE kite.access (
    tenant text NOT NULL,
    id text NOT NULL,
    scope text NOT NULL,
    project text NOT NULL,
    accessed timestamptz NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 70);

CREATE TABLE kite.trash (
    tenant text NOT NULL,
    id text NOT NULL,
    scope text NOT NULL,
    project text NOT NULL,
    at timestamptz NOT NULL,
    note json NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE kite.conversation (
    tenant text NOT NULL CHECK (tenant <> ''),
    uuid text NOT NULL,
    scope text NOT NULL,
    project text NOT NULL,
    source text NOT NULL,
    record json NOT NULL,
    overall json NOT NULL,
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL,
    created_by text NOT NULL,
    transcript bytea,
    PRIMARY KEY (tenant, uuid, scope, project)
);

CREATE TABLE kite.state (
    tenant text NOT NULL CHECK (tenant <> ''),
    ai text NOT NULL,
    session text NOT NULL,
    project text NOT NULL,
    scope text NOT NULL DEFAULT 'session' CHECK (scope = 'session'),
    saved timestamptz NOT NULL,
    body json NOT NULL,
    PRIMARY KEY (tenant, ai, session, project)
);
CREATE INDEX state_recent ON kite.state (tenant, saved DESC);
"""

GUARDED: Final = ("note", "memory_version", "access", "trash", "conversation", "state")
_WITH_PERSONS: Final = ("note", "memory_version", "access", "trash", "conversation", "words", "passage")


def _guards(table: str, *, reading_writes: bool = False, forced: bool = True) -> str:
    """Return the policies. A grant may read what it sees, and change what it sees if it may write. Reads may always be counted."""
    return f"""
ALTER TABLE kite.{table} ENABLE ROW LEVEL SECURITY;
{f"ALTER TABLE kite.{table} FORCE ROW LEVEL SECURITY;" if forced else ""}
{_policies(table, _VISIBLE_AT_FIRST, reading_writes=reading_writes)}"""


def _policies(table: str, visible: str, *, reading_writes: bool) -> str:
    writing = visible if reading_writes else f"(SELECT kite.writes()) AND {visible}"
    return f"""
CREATE POLICY seen ON kite.{table} FOR SELECT USING ({visible});
CREATE POLICY made ON kite.{table} FOR INSERT WITH CHECK ({writing});
CREATE POLICY changed ON kite.{table} FOR UPDATE USING ({writing}) WITH CHECK ({writing});
CREATE POLICY taken_away ON kite.{table} FOR DELETE USING ({writing});
"""


_RIGHTS = """
GRANT USAGE ON SCHEMA kite TO kite_app;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA kite TO kite_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON kite.note, kite.access, kite.conversation, kite.state TO kite_app;
GRANT SELECT, INSERT, UPDATE (value) ON kite.memory_version TO kite_app;
GRANT SELECT, INSERT, DELETE, UPDATE (note) ON kite.trash TO kite_app;
"""

_FINDING = """
CREATE TABLE kite.words (
    tenant text NOT NULL CHECK (tenant <> ''),
    id text NOT NULL,
    scope text NOT NULL,
    project text NOT NULL,
    kind text NOT NULL,
    created timestamptz NOT NULL,
    expires timestamptz,
    length integer NOT NULL,
    tsv tsvector NOT NULL,
    PRIMARY KEY (tenant, id)
);
ALTER TABLE kite.words ALTER COLUMN tsv SET STATISTICS 500;
CREATE INDEX words_of ON kite.words (tenant, project, scope);
CREATE INDEX words_tsv ON kite.words USING gin (tsv) WITH (fastupdate = off);

CREATE TABLE kite.passage (
    tenant text NOT NULL CHECK (tenant <> ''),
    id text NOT NULL,
    place smallint NOT NULL,
    scope text NOT NULL,
    project text NOT NULL,
    kind text NOT NULL,
    created timestamptz NOT NULL,
    expires timestamptz,
    space text NOT NULL,
    embedding {vectors}.halfvec,
    PRIMARY KEY (tenant, id, place)
);
ALTER TABLE kite.passage ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX passage_of ON kite.passage (tenant, project, scope);
CREATE INDEX passage_of_space ON kite.passage (tenant, space);
"""

_FUNCTIONS = """
CREATE FUNCTION kite.within(project text, kinds text[], since timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' AND ',
        format('tenant = %L', kite.tenant()),
        format('scope = ANY (%L::text[])', kite.scopes()),
        CASE WHEN NOT kite.all_projects() THEN format(
            '(project = ANY (%L::text[]) OR (project = %L AND scope IN (%L, %L)))', kite.projects(), '', 'global', 'shared') END,
        CASE WHEN project <> '' THEN format('(project IN (%L, %L) OR scope = %L)', '', project, 'shared') END,
        CASE WHEN cardinality(kinds) > 0 THEN format('kind = ANY (%L::text[])', kinds) END,
        CASE WHEN since IS NOT NULL THEN format('created >= %L', since) END,
        '(expires IS NULL OR expires > now())')
$$;

CREATE FUNCTION kite.guess(condition text) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, {vectors}, pg_temp AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT 1 FROM kite.words WHERE ' || condition INTO plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::bigint;
END $$;

-- About how many notes there are for the asker, how many of them hold each term, and how many rows looking that up takes:
-- exact for a few, guessed for many.
CREATE FUNCTION kite.about(terms text[], project text, kinds text[], since timestamptz, few bigint,
                           OUT notes bigint, OUT holding bigint[], OUT reading bigint[]) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {vectors}, pg_temp AS $$
DECLARE
    condition text := kite.within(project, kinds, since);
    counts text;
BEGIN
    holding := '{{}}';
    reading := '{{}}';
    IF kite.tenant() IS NULL THEN notes := 0; RETURN; END IF;
    notes := kite.guess(condition);
    IF notes <= few THEN
        SELECT coalesce(string_agg(format('count(*) FILTER (WHERE tsv @@ %L::tsquery)', asked.term), ', ' ORDER BY asked.place), '')
            INTO counts FROM unnest(terms) WITH ORDINALITY AS asked(term, place);
        EXECUTE format('SELECT count(*), ARRAY[%s]::bigint[] FROM (SELECT tsv FROM kite.words WHERE %s LIMIT %s) AS few',
                       counts, condition, 4 * few) INTO notes, holding;
        reading := holding;
    ELSE
        SELECT coalesce(array_agg(kite.guess(concat(asked.held, condition)) ORDER BY asked.place), '{{}}'),
               coalesce(array_agg(kite.guess(concat(asked.held, asked.ours)) ORDER BY asked.place), '{{}}')
            INTO holding, reading
            FROM (SELECT place, format('tsv @@ %L::tsquery AND ', term) AS held, format('tenant = %L', kite.tenant()) AS ours
                  FROM unnest(terms) WITH ORDINALITY AS each(term, place)) AS asked;
    END IF;
END $$;

-- Notes that lie near in meaning or hold the terms, and what speaks for each: never a word of theirs.
CREATE FUNCTION kite.find(vector text, in_space text, dim integer, terms text[], titled text[], weights real[], project text,
                          kinds text[], since timestamptz, few boolean, exact boolean, most integer)
RETURNS TABLE (id text, cosine real, matched integer[], in_title integer[], length integer) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, {vectors}, pg_temp AS $$
DECLARE
    condition text := kite.within(project, kinds, since);
    near text[] := '{{}}';
    heard text[] := '{{}}';
    visible text := 'WITH visible AS MATERIALIZED (SELECT id, tsv FROM kite.words WHERE %s)';
    among text;
    parts text;
    distance text;
BEGIN
    IF kite.tenant() IS NULL THEN RETURN; END IF;
    IF vector <> '' THEN
        distance := format('embedding::halfvec(%s) <=> %L::halfvec(%s)', dim, vector, dim);
        IF exact THEN
            EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM kite.passage WHERE space = %L AND %s GROUP BY id '
                           'ORDER BY min(%s) LIMIT %s) nearest', in_space, condition, distance, most) INTO near;
        ELSE
            EXECUTE format('SELECT array_agg(DISTINCT id) FROM (SELECT id FROM kite.passage WHERE space = %L AND %s '
                           'ORDER BY %s LIMIT %s) nearest', in_space, condition, distance, most) INTO near;
        END IF;
    END IF;
    IF cardinality(terms) > 0 THEN
        -- A few notes are looked at one by one: the index would first gather all notes of all tenants that hold a frequent word.
        among := CASE WHEN few THEN 'visible WHERE true' ELSE 'kite.words WHERE ' || condition END;
        SELECT string_agg(format('(SELECT id, %s * CASE WHEN tsv @@ %L::tsquery THEN 1.3 ELSE 1 END AS weight '
                                 'FROM %s AND tsv @@ %L::tsquery LIMIT 4000)', weights[place], titled[place], among, term),
                          ' UNION ALL ')
            INTO parts FROM unnest(terms) WITH ORDINALITY AS asked(term, place);
        EXECUTE format('%s SELECT array_agg(id) FROM (SELECT id FROM (%s) found GROUP BY id ORDER BY sum(weight) DESC, id DESC '
                       'LIMIT %s) best',
                       CASE WHEN few THEN format(visible, condition) END, parts, most) INTO heard;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT words.id, coalesce((SELECT max(1 - (%s)) FROM kite.passage WHERE passage.tenant = words.tenant '
        '       AND passage.id = words.id AND space = %L), 0)::real, '
        '       ARRAY(SELECT place::int FROM unnest($1) WITH ORDINALITY AS asked(term, place) WHERE tsv @@ term::tsquery), '
        '       ARRAY(SELECT place::int FROM unnest($2) WITH ORDINALITY AS asked(term, place) WHERE tsv @@ term::tsquery), '
        '       words.length FROM kite.words WHERE id = ANY ($3) AND %s',
        coalesce(distance, '1'), in_space, condition) USING terms, titled, coalesce(near, '{{}}') || coalesce(heard, '{{}}');
END $$;

REVOKE ALL ON FUNCTION kite.guess, kite.within FROM PUBLIC;
REVOKE ALL ON FUNCTION kite.about FROM PUBLIC;
REVOKE ALL ON FUNCTION kite.find FROM PUBLIC;
GRANT EXECUTE ON FUNCTION kite.about TO kite_app;
GRANT EXECUTE ON FUNCTION kite.find TO kite_app;
GRANT INSERT, UPDATE, DELETE, SELECT (tenant, id) ON kite.words TO kite_app;
GRANT INSERT, UPDATE, DELETE, SELECT (tenant, id, place, space) ON kite.passage TO kite_app;
"""

_OBJECTS = """
ALTER TABLE kite.conversation ADD COLUMN object text NOT NULL DEFAULT '';
ALTER TABLE kite.conversation ADD COLUMN object_hash text NOT NULL DEFAULT '';
CREATE INDEX conversation_object ON kite.conversation (tenant, object) WHERE object <> '';
"""

_ENDING = """
ALTER TABLE kite.note ADD COLUMN found_over timestamptz;
CREATE INDEX note_ending ON kite.note (tenant, expires) WHERE expires IS NOT NULL;
"""
"""``found_over`` is when a note was first seen as expired, so that a clock that is far ahead for an hour hides notes only for an
hour.
"""

_TITLES = """
CREATE INDEX note_title ON kite.note USING hash (title);
"""

_WHOSE = """
CREATE FUNCTION kite.person() RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT coalesce(current_setting('kite.person', true), '') $$;
CREATE FUNCTION kite.everybody() RETURNS boolean LANGUAGE sql STABLE AS
    $$ SELECT coalesce(current_setting('kite.everybody', true) = 'on', false) $$;
CREATE FUNCTION kite.whose(scope text) RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT CASE WHEN scope = 'global' THEN kite.person() ELSE '' END $$;
GRANT EXECUTE ON FUNCTION kite.person, kite.everybody, kite.whose TO kite_app;
"""

_WHOSE_IT_BECOMES = """
UPDATE kite.note SET person = created_by WHERE scope = 'global';
UPDATE kite.conversation SET person = created_by WHERE scope = 'global';
-- from the text, since PostgreSQL would not take apart JSON that holds an escaped NUL
UPDATE kite.trash SET person =
    coalesce(('"' || substring(note::text FROM '"created_by": ?"((?:[^"\\\\]|\\\\.)*)"') || '"')::json #>> '{{}}', '')
    WHERE scope = 'global' AND json_typeof(note) = 'object';
UPDATE kite.memory_version AS kept SET person = coalesce(
    (SELECT note.person FROM kite.note WHERE (note.tenant, note.key, note.scope, note.project, note.session)
        = (kept.tenant, kept.key, kept.scope, kept.project, kept.session)),
    (SELECT author FROM kite.memory_version AS last WHERE (last.tenant, last.key, last.scope, last.project, last.session)
        = (kept.tenant, kept.key, kept.scope, kept.project, kept.session) ORDER BY version DESC LIMIT 1))
    WHERE scope = 'global';
UPDATE kite.access AS of SET person = note.person FROM kite.note
    WHERE of.scope = 'global' AND note.tenant = of.tenant AND note.id = of.id;
UPDATE kite.words AS of SET person = note.person FROM kite.note
    WHERE of.scope = 'global' AND note.tenant = of.tenant AND note.id = of.id;
UPDATE kite.passage AS of SET person = note.person FROM kite.note
    WHERE of.scope = 'global' AND note.tenant = of.tenant AND note.id = of.id;

DROP INDEX kite.memory;
CREATE UNIQUE INDEX memory ON kite.note (tenant, key, scope, project, session, person) WHERE key <> '';
CREATE INDEX memory_recent ON kite.note (tenant, updated DESC) WHERE key <> '';
ALTER TABLE kite.memory_version DROP CONSTRAINT memory_version_pkey,
    ADD PRIMARY KEY (tenant, key, scope, project, session, person, version);
ALTER TABLE kite.conversation DROP CONSTRAINT conversation_pkey, ADD PRIMARY KEY (tenant, uuid, scope, project, person);
ALTER TABLE kite.note ADD COLUMN context json NOT NULL DEFAULT '{{}}';
"""

_WITHIN = """
CREATE OR REPLACE FUNCTION kite.within(project text, kinds text[], since timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' AND ',
        format('tenant = %L', kite.tenant()),
        format('scope = ANY (%L::text[])', kite.scopes()),
        CASE WHEN NOT kite.all_projects() THEN format(
            '(project = ANY (%L::text[]) OR (project = %L AND scope IN (%L, %L)))', kite.projects(), '', 'global', 'shared') END,
        CASE WHEN NOT kite.everybody() THEN format('(scope <> %L OR person = %L)', 'global', kite.person()) END,
        CASE WHEN project <> '' THEN format('(project IN (%L, %L) OR scope = %L)', '', project, 'shared') END,
        CASE WHEN cardinality(kinds) > 0 THEN format('kind = ANY (%L::text[])', kinds) END,
        CASE WHEN since IS NOT NULL THEN format('created >= %L', since) END,
        '(expires IS NULL OR expires > now())')
$$;

"""


def _each(tables: Sequence[str], change: str) -> str:
    return "".join(f"ALTER TABLE kite.{table} {change};\n" for table in tables)


def _guarded_anew(table: str) -> str:
    away = "".join(f"DROP POLICY {policy} ON kite.{table};\n" for policy in ("seen", "made", "changed", "taken_away"))
    return away + _policies(table, VISIBLE, reading_writes=table == "access")


_PERSONS = "".join(
    (
        _WHOSE,
        _each(_WITH_PERSONS, "ADD COLUMN person text NOT NULL DEFAULT ''"),
        _each(GUARDED, "NO FORCE ROW LEVEL SECURITY"),  # otherwise the owner would see no row to change
        _WHOSE_IT_BECOMES,
        _each(GUARDED, "FORCE ROW LEVEL SECURITY"),
        *map(_guarded_anew, _WITH_PERSONS),
        _WITHIN,
    )
)
"""Global memories get a person: existing ones that of the token that wrote them.

A state has a session's scope and no person.
"""

MIGRATIONS: Final[tuple[str, ...]] = (
    _SETTINGS + _TABLES + "".join(_guards(table, reading_writes=table == "access") for table in GUARDED) + _RIGHTS,
    _FINDING + "".join(_guards(table, forced=False) for table in ("words", "passage")) + _FUNCTIONS,
    _OBJECTS,
    _ENDING,
    _TITLES,
    _PERSONS,
    audit.SCHEMA,
)
"""Each migrates the schema from its index to the next version, in one transaction. Published ones are never changed.

Written for `str.format`: ``{vectors}`` is the schema in which pgvector is installed.
"""

PERSONS_SINCE: Final = 6
VERSION: Final = len(MIGRATIONS)


_SET_UP: Final = "`kmem serve --store URL --migrate` does it, as the database's owner"
_TURN_SECONDS: Final = 0.1
_ONE_AT_A_TIME: Final = 0x6B_69_74_65
"""The advisory lock's number: «kite»."""


class NotPermitted(KiteError):
    """The database user lacks a right needed for the set-up."""


def migrate(
    url: str,
    *,
    spaces: Sequence[Space] = (),
    password: str = "",
    to: int = VERSION,
    tell: Callable[[str], None] = lambda line: None,
) -> int:
    """Migrate the database and return its former version. Safe to run concurrently: one process migrates, the others find it done.

    ``tell`` is called with a line for each person who now owns notes that were global for all. Afterwards each of ``spaces`` has an
    index; building one over many rows takes time but blocks no writer.
    """
    try:
        with connect(url, password) as connection:
            _take_turn(connection)
            try:
                before = _forward(connection, to, tell)
                if to >= 2:
                    for space in spaces:
                        _index(connection, space)
            finally:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_ONE_AT_A_TIME,))
    except errors.InsufficientPrivilege as error:
        raise NotPermitted(
            f"this user of the database may not set it up: {error.diag.message_primary}",
            hint="migrate as the database's owner, one that may create roles; serving needs neither",
        ) from error
    except psycopg.OperationalError as error:
        raise unavailable(error) from error
    return before


def check(connection: Connection) -> None:
    """Raise `SchemaMissing`, `StateNewer` or `NotPermitted` if this version cannot work with the database."""
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls AS unbound, pg_has_role(rolname, 'MEMBER') AS ours FROM pg_roles WHERE rolname = %s",
        (ROLE,),
    ).fetchone()
    if row is None:
        raise SchemaMissing("the team's database is not set up", hint=_SET_UP)
    if not row["ours"]:
        raise NotPermitted(f"this user of the database may not act as {ROLE}", hint=f"as its owner: GRANT {ROLE} TO <user>")
    if row["unbound"]:
        raise NotPermitted(f"the role {ROLE} is above the database's policies", hint=f"ALTER ROLE {ROLE} NOSUPERUSER NOBYPASSRLS")
    with connection.transaction():
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(ROLE)))
        found = _version(connection)
    if found > VERSION:
        raise StateNewer(f"the team's database is of version {found}, newer than this kmem", hint="update kmem")
    if found < VERSION:
        is_old = f"the team's database is of version {found}, this kmem needs {VERSION}"
        raise SchemaMissing(is_old if found else "the team's database is not set up", hint=_SET_UP)


def _take_turn(connection: Connection) -> None:
    """Take the advisory lock by polling: a session that waits within a statement would block the concurrent build of an index."""
    while True:
        row = connection.execute("SELECT pg_try_advisory_lock(%s) AS ours", (_ONE_AT_A_TIME,)).fetchone()
        if row is not None and row["ours"]:
            return
        time.sleep(_TURN_SECONDS)


def _version(connection: Connection) -> int:
    row = connection.execute("SELECT to_regclass('kite.migration') AS there").fetchone()
    if row is None or row["there"] is None:
        return 0
    found = connection.execute("SELECT coalesce(max(version), 0) AS version FROM kite.migration").fetchone()
    return int(found["version"]) if found else 0


def _forward(connection: Connection, to: int, tell: Callable[[str], None]) -> int:
    before = _version(connection)
    if before > VERSION:
        raise StateNewer(f"the team's database is of version {before}, newer than this kmem", hint="update kmem")
    for number in range(before + 1, to + 1):
        with connection.transaction():
            if number == 1:
                _prepare(connection)
            connection.execute(MIGRATIONS[number - 1].format(vectors=_vectors(connection)).encode())
            if number == PERSONS_SINCE:
                _tell_whose(connection, tell)
            connection.execute("INSERT INTO kite.migration (version, at) VALUES (%s, now())", (number,))
    return before


def _tell_whose(connection: Connection, tell: Callable[[str], None]) -> None:
    """Report the owners within the migration, in which the table's owner can see all rows."""
    connection.execute("ALTER TABLE kite.note NO FORCE ROW LEVEL SECURITY")
    rows = connection.execute(
        "SELECT tenant, person, count(*) AS count FROM kite.note WHERE scope = 'global'"
        " GROUP BY tenant, person ORDER BY tenant, person"
    ).fetchall()
    connection.execute("ALTER TABLE kite.note FORCE ROW LEVEL SECURITY")
    for row in rows:
        whose = f"{row['person']!r}, who wrote them" if row["person"] else "the server's owner"
        tell(f"{row['count']} global notes and memories of {row['tenant']!r} now belong to {whose}")


def _prepare(connection: Connection) -> None:
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is None:
        try:
            with connection.transaction():
                connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(ROLE)))
        except (errors.DuplicateObject, errors.UniqueViolation):
            pass  # roles belong to the whole server: another database's migration made it first
    member = connection.execute("SELECT pg_has_role(%s, 'MEMBER') AS ours", (ROLE,)).fetchone()
    if member is None or not member["ours"]:
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(ROLE)))
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("CREATE SCHEMA IF NOT EXISTS kite")
    connection.execute("CREATE TABLE kite.migration (version integer PRIMARY KEY, at timestamptz NOT NULL)")
    connection.execute(sql.SQL("GRANT SELECT ON kite.migration TO {}").format(sql.Identifier(ROLE)))


def _vectors(connection: Connection) -> str:
    row = connection.execute(
        "SELECT quote_ident(nspname) AS name FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
        " WHERE extname = 'vector'"
    ).fetchone()
    if row is None:
        raise NotPermitted("the team's database has no pgvector", hint="CREATE EXTENSION vector, 0.8 or later")
    return str(row["name"])


def _index(connection: Connection, space: Space) -> None:
    """Create the index without blocking writers. The invalid index of an interrupted build is dropped first."""
    name = index_name(space)
    state = connection.execute(
        "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f'kite."{name}"',)
    ).fetchone()
    if state is not None and state["valid"]:
        return
    if state is not None:
        connection.execute(sql.SQL("DROP INDEX kite.{}").format(sql.Identifier(name)))
    vectors = sql.SQL(_vectors(connection))
    connection.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY {} ON kite.passage USING hnsw"
            " ((embedding::{}.halfvec({})) {}.halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) WHERE space = {}"
        ).format(sql.Identifier(name), vectors, sql.Literal(space.dim), vectors, sql.Literal(space.tag))
    )


def index_name(space: Space) -> str:
    return f"near_{space.tag}"[:63]
