"""SQL of the session memory's tables, one constant for each version."""

SCHEMA_1 = """
CREATE TABLE shown (session TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, note)) WITHOUT ROWID;
CREATE INDEX shown_by_time ON shown(at)
"""
SCHEMA_2 = """
CREATE TABLE occasion (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, moment TEXT NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL,
    head TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX occasion_by_time ON occasion(at);
CREATE TABLE showing (
    number INTEGER PRIMARY KEY, occasion INTEGER NOT NULL, at REAL NOT NULL, moment TEXT NOT NULL, session TEXT NOT NULL,
    note TEXT NOT NULL, score REAL NOT NULL, standing TEXT NOT NULL DEFAULT 'open', why TEXT NOT NULL DEFAULT '', settled REAL
);
CREATE INDEX showing_by_time ON showing(at);
CREATE INDEX showing_by_occasion ON showing(occasion);
CREATE INDEX showing_open ON showing(at) WHERE standing = 'open';
CREATE TABLE tally (
    note TEXT PRIMARY KEY, shown INTEGER NOT NULL, used INTEGER NOT NULL DEFAULT 0, ignored INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE week (week TEXT PRIMARY KEY, prompts INTEGER NOT NULL, silent INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE ruling (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL, features TEXT NOT NULL,
    notes TEXT NOT NULL, anything REAL NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, dollars REAL NOT NULL
);
CREATE INDEX ruling_by_time ON ruling(at)
"""
SCHEMA_3 = """
CREATE TABLE listed (
    session TEXT NOT NULL, note TEXT NOT NULL, score REAL NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, note)
) WITHOUT ROWID;
CREATE INDEX listed_by_time ON listed(at);
CREATE INDEX showing_by_note ON showing(note)
"""
SCHEMA_4 = """
CREATE TABLE tally_elsewhere (
    machine TEXT NOT NULL, note TEXT NOT NULL, shown INTEGER NOT NULL, used INTEGER NOT NULL, ignored INTEGER NOT NULL,
    PRIMARY KEY (note, machine)
) WITHOUT ROWID;
CREATE VIEW counted AS SELECT note, SUM(shown) AS shown, SUM(used) AS used, SUM(ignored) AS ignored FROM (
    SELECT note, shown, used, ignored FROM tally UNION ALL SELECT note, shown, used, ignored FROM tally_elsewhere
) GROUP BY note
"""
