// Runs files of tests with the project's own jest, and reports each test. It is the program and jest's reporter in
// one module, in the process that loads nothing of the project but its configuration.
'use strict';
const { createRequire } = require('node:module');
const path = require('node:path');
const { open, reason, words } = require('./report.cjs');

const { settings, add } = open();
const { files, marker, worker, workers } = settings;
const OUTCOMES = { passed: 'passed', failed: 'failed', pending: 'skipped', skipped: 'skipped', todo: 'skipped', disabled: 'skipped' };
let started = false;

/** The reporter, which jest makes once, before it runs a file. */
module.exports = class Reporter {
  constructor() {
    if (started) throw new Error('the reporter is made once');
    started = true;
  }

  onTestResult(_test, result) {
    const file = result.testFilePath;
    const broken = result.testExecError ?? (result.failureMessage && result.testResults.length === 0 ? result.failureMessage : null);
    if (broken) add({ kind: 'file', file, message: reason(broken) || 'it cannot be loaded' });
    for (const found of result.testResults) {
      const message = words(found.failureMessages?.[0] ?? '');
      let outcome = OUTCOMES[found.status] ?? 'failed';
      if (outcome === 'failed' && message.includes(marker)) outcome = 'hung';
      const names = [...found.ancestorTitles.map(words), words(found.title)];
      add({ kind: 'test', file, names, outcome, ms: found.duration ?? 0, message: outcome === 'failed' ? message : '' });
    }
    add({ kind: 'loaded', file });
  }

  onRunComplete() {
    add({ kind: 'end' });
  }

  getLastError() {}
};

/** Return what runs jest; only where that cannot be loaded is the fault nobody's but the environment's. */
function runner() {
  try {
    return createRequire(path.join(process.cwd(), 'package.json'))('jest').run;
  } catch (error) {
    add({ kind: 'broken', message: reason(error) });
    throw error;
  }
}

async function main() {
  const run = runner();
  process.env.TFGRPO_TESTS_WORKER = worker;
  const chosen = files.length ? ['--runTestsByPath', ...files] : [];
  await run([
    '--ci', '--no-watchman', '--no-coverage', '--passWithNoTests', '--bail=0', '--watch=false', '--watchAll=false',
    `--maxWorkers=${workers}`, `--cacheDirectory=${settings.cache}`, `--reporters=${__filename}`,
    `--testRunner=${path.join(__dirname, 'jest_runner.cjs')}`, '--notify=false', '--forceExit', ...chosen,
  ]);
}

if (require.main === module) {
  main().catch((error) => {
    console.error(error);
    process.exit(3);
  });
}
