// Runs one file with jest's own runner of tests, notes each start, and declares a test that must pass and one that
// must fail behind the file's own.
'use strict';
const { appendFileSync, readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');

const { passing, failing, hung, marker, starts } = JSON.parse(readFileSync(process.env.TFGRPO_TESTS_WORKER, 'utf8'));
delete process.env.TFGRPO_TESTS_WORKER;
const { stringify } = JSON;

/** Return jest's own runner: of the project's jest, not of ours. */
function ownRunner() {
  const jest = createRequire(path.join(process.cwd(), 'package.json')).resolve('jest');
  const core = createRequire(createRequire(jest).resolve('@jest/core'));
  const config = createRequire(core.resolve('jest-config'));
  for (const name of ['jest-circus/runner', 'jest-circus/legacy-code-todo-rewrite/jestAdapter', 'jest-jasmine2']) {
    try {
      const found = require(config.resolve(name));
      return found.default ?? found;
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND' && error.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
    }
  }
  throw new Error('jest-circus and jest-jasmine2 are missing');
}

const run = ownRunner();

module.exports = async (globalConfig, config, environment, runtime, file, ...rest) => {
  let declared = false;
  const own = hung.filter(([at]) => at === file).map(([, name]) => name);
  const before = () => {
    const world = environment.global;
    const name = () => world.expect.getState().currentTestName ?? '';
    const note = (kind) => appendFileSync(starts, `${stringify({ kind, file, name: name() })}\n`);
    world.beforeEach(() => {
      note('start');
      if (own.includes(name())) throw new Error(marker);
    });
    world.afterEach(() => note('stop'));
  };
  const after = () => {
    const { test, expect } = environment.global;
    if (!passing) return;
    test(passing, () => expect(1).toBe(1));
    test(failing, () => expect(1).toBe(2));
  };
  const required = runtime.requireModule.bind(runtime);
  runtime.requireModule = (from, ...more) => {
    if (from !== file || declared) return required(from, ...more);
    declared = true;
    before();
    const found = required(from, ...more);
    after();
    return found;
  };
  const imported = runtime.unstable_importModule?.bind(runtime);
  if (imported) {
    runtime.unstable_importModule = async (from, ...more) => {
      if (from !== file || declared) return imported(from, ...more);
      declared = true;
      before();
      const found = await imported(from, ...more);
      after();
      return found;
    };
  }
  return run(globalConfig, config, environment, runtime, file, ...rest);
};
