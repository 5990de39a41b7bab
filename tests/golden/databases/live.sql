BEGIN TRANSACTION;
CREATE TABLE attempts (
        rollout INTEGER NOT NULL,
        number INTEGER NOT NULL,
        status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'succeeded', 'failed', 'cancelled')),
        reason TEXT NOT NULL DEFAULT '',
        started_at REAL NOT NULL,
        ended_at REAL,
        PRIMARY KEY (rollout, number)) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,1,'succeeded','',1000.0,1005.0);
CREATE TABLE gate (
        number INTEGER PRIMARY KEY, at REAL NOT NULL, state TEXT NOT NULL CHECK (state IN ('pass', 'hold')),
        document TEXT NOT NULL);
INSERT INTO "gate" VALUES(1,1.0,'pass','{"state":"pass","streak":0,"reason":"","last_error":null,"since":0.0,"by":"","blocked":[false],"control":{},"failures":{}}');
INSERT INTO "gate" VALUES(2,3.0,'hold','{"state":"hold","streak":0,"reason":"failures","last_error":null,"since":3.0,"by":"","blocked":[true,false],"control":{},"failures":{}}');
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('namespace','shop');
CREATE TABLE refusals (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rollouts (
        sequence INTEGER PRIMARY KEY,
        run TEXT NOT NULL,
        owner TEXT NOT NULL,
        category TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'succeeded', 'failed', 'cancelled')),
        reason TEXT NOT NULL DEFAULT '',
        control INTEGER NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 1,
        started_at REAL NOT NULL,
        touched_at REAL NOT NULL,
        ended_at REAL,
        score REAL CHECK (score BETWEEN 0 AND 1),
        pending INTEGER CHECK (pending IN (1, 2)),
        used_in INTEGER,
        prompt TEXT,
        reply TEXT,
        trace TEXT,
        reward TEXT);
INSERT INTO "rollouts" VALUES(1,'a','a-owner','billing','succeeded','',0,1,1000.0,1.0,1005.0,NULL,1,NULL,'Pay 7','Paid','{"prompt_chars":5,"reply_chars":4,"completed":true,"turns":2,"tool_errors":1,"blocked":false,"score":null,"cost_usd":null,"latency_ms":12.5}','{"strategy":"by_turns","composite":0.4,"components":{"completion":0.5,"reliability":-0.1},"confidence":0.75,"hard_gate":false}');
CREATE TABLE selectors (
        number INTEGER PRIMARY KEY, made_by INTEGER NOT NULL, at REAL NOT NULL, document TEXT NOT NULL);
CREATE TABLE spans (
        rollout INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        name TEXT NOT NULL,
        at REAL NOT NULL,
        flag INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (rollout, seq)) WITHOUT ROWID;
INSERT INTO "spans" VALUES(1,1,1,'live.agent.choice',1001.0,0,'{"point":"config","place":0,"arm":"learned","arms":{"bare":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","learned":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},"probabilities":{"bare":0.25,"learned":0.75},"selector":0,"control":false}');
INSERT INTO "spans" VALUES(1,2,1,'live.agent.turn',1002.0,0,'{}');
INSERT INTO "spans" VALUES(1,3,1,'live.agent.tool',1003.0,1,'{"name":"search","error":"TimeoutError"}');
INSERT INTO "spans" VALUES(1,4,1,'live.agent.turn',1004.0,0,'{}');
INSERT INTO "spans" VALUES(1,5,1,'live.agent.decision',1005.0,0,'{"status":"succeeded","reason":"","reward":0.4,"reward_completion":0.5,"reward_reliability":-0.1,"reward_confidence":0.75,"reward_strategy":"by_turns","hard_gate":false}');
CREATE TABLE updates (
        number INTEGER PRIMARY KEY, at REAL NOT NULL, executed INTEGER NOT NULL, report TEXT NOT NULL);
CREATE UNIQUE INDEX rollout_owners ON rollouts (owner, run);
CREATE INDEX rollout_runs ON rollouts (run, sequence);
CREATE INDEX rollouts_running ON rollouts (touched_at) WHERE status = 'running';
CREATE INDEX rollouts_pending ON rollouts (score IS NULL, ended_at) WHERE pending IS NOT NULL;
CREATE TRIGGER rollouts_are_final BEFORE UPDATE OF status ON rollouts
        WHEN OLD.status IN ('succeeded', 'failed', 'cancelled') BEGIN SELECT RAISE(ABORT, 'the run has ended'); END;
CREATE TRIGGER attempts_are_final BEFORE UPDATE OF status ON attempts
        WHEN OLD.status IN ('succeeded', 'failed', 'cancelled') BEGIN SELECT RAISE(ABORT, 'the run has ended'); END;
CREATE TRIGGER rollouts_are_used_once BEFORE UPDATE OF used_in ON rollouts
        WHEN OLD.used_in IS NOT NULL BEGIN SELECT RAISE(ABORT, 'the rollout is used'); END;
COMMIT;
PRAGMA application_id = 1952869490;
PRAGMA user_version = 1;
