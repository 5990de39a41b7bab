BEGIN TRANSACTION;
CREATE TABLE audit (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, action TEXT NOT NULL,
        what TEXT NOT NULL, ref TEXT);
CREATE TABLE dead (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, code TEXT NOT NULL,
        stream TEXT NOT NULL, subject TEXT NOT NULL, redacted TEXT);
CREATE TABLE deployments (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, redacted TEXT);
CREATE TABLE feedback (id TEXT PRIMARY KEY, event_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    time TEXT NOT NULL, trajectory_id TEXT NOT NULL, session TEXT, orphan INTEGER NOT NULL,
    dead INTEGER NOT NULL DEFAULT 0, slim TEXT NOT NULL, redacted TEXT, type TEXT NOT NULL);
CREATE TABLE further (id TEXT PRIMARY KEY, said TEXT NOT NULL);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('generation','1');
INSERT INTO "meta" VALUES('forgets_known','0');
INSERT INTO "meta" VALUES('bus','ca20982e-dc46-4192-9c9e-f966cbb0867b');
INSERT INTO "meta" VALUES('k','kept');
CREATE TABLE refused (stream TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, code TEXT NOT NULL,
        pointer TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (stream, seq));
INSERT INTO "refused" VALUES('RL_TRAJECTORIES',1,1.7958060117016310692e+09,'schema','','is no event: JSONDecodeError(''Expecting value: line 1 column 1 (char 0)'')');
INSERT INTO "refused" VALUES('RL_TRAJECTORIES',2,1.7958060117016310692e+09,'schema','','is no event: JSONDecodeError(''Expecting value: line 1 column 1 (char 0)'')');
CREATE TABLE rewards (id TEXT PRIMARY KEY, event_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    time TEXT NOT NULL, trajectory_id TEXT NOT NULL, session TEXT, orphan INTEGER NOT NULL,
    dead INTEGER NOT NULL DEFAULT 0, slim TEXT NOT NULL, redacted TEXT, own INTEGER NOT NULL, revision INTEGER NOT NULL, ordinal INTEGER NOT NULL,
        total REAL NOT NULL, normalized REAL);
CREATE TABLE streams (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, at REAL NOT NULL);
INSERT INTO "streams" VALUES('RL_TRAJECTORIES',2,1.7958060117016310692e+09);
CREATE TABLE superseded (id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, time TEXT NOT NULL, session TEXT NOT NULL,
    user_ref TEXT, domain TEXT NOT NULL, task_key TEXT, policy_version TEXT, ended TEXT NOT NULL,
    turns INTEGER NOT NULL, trace_id TEXT, slim TEXT NOT NULL, redacted TEXT, revision INTEGER NOT NULL,
    silent INTEGER NOT NULL, blocked INTEGER NOT NULL, agent TEXT NOT NULL, profile TEXT, model TEXT, wording TEXT, started TEXT NOT NULL, PRIMARY KEY (id, seq));
CREATE TABLE training (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, redacted TEXT);
CREATE TABLE trajectories (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, at REAL NOT NULL, time TEXT NOT NULL, session TEXT NOT NULL,
    user_ref TEXT, domain TEXT NOT NULL, task_key TEXT, policy_version TEXT, ended TEXT NOT NULL,
    turns INTEGER NOT NULL, trace_id TEXT, slim TEXT NOT NULL, redacted TEXT, revision INTEGER NOT NULL,
    silent INTEGER NOT NULL, blocked INTEGER NOT NULL, agent TEXT NOT NULL, profile TEXT, model TEXT, wording TEXT, started TEXT NOT NULL);
CREATE UNIQUE INDEX trajectories_seq ON trajectories (seq);
CREATE INDEX superseded_seq ON superseded (seq);
CREATE TRIGGER trajectories_revised BEFORE UPDATE ON trajectories BEGIN
    INSERT OR IGNORE INTO superseded SELECT * FROM trajectories WHERE id = OLD.id; END;
CREATE INDEX trajectories_session ON trajectories (session);
CREATE INDEX trajectories_user ON trajectories (user_ref) WHERE user_ref IS NOT NULL;
CREATE INDEX trajectories_trace ON trajectories (trace_id) WHERE trace_id IS NOT NULL;
CREATE UNIQUE INDEX feedback_seq ON feedback (seq);
CREATE INDEX feedback_of ON feedback (trajectory_id);
CREATE INDEX feedback_event ON feedback (event_id);
CREATE INDEX feedback_orphan ON feedback (trajectory_id) WHERE orphan;
CREATE UNIQUE INDEX rewards_seq ON rewards (own, seq);
CREATE INDEX rewards_ordinal ON rewards (ordinal) WHERE own;
CREATE INDEX rewards_of ON rewards (trajectory_id, own, revision, seq, total);
CREATE INDEX rewards_event ON rewards (event_id);
CREATE INDEX rewards_orphan ON rewards (trajectory_id) WHERE orphan;
COMMIT;
PRAGMA application_id = 1952869494;
PRAGMA user_version = 6;
