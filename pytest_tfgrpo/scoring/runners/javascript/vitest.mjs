// Runs files of tests with the project's own vitest, and reports each test. Vitest runs files in workers; what it
// says of them is read here, in the process that loads nothing of the project but its configuration.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);
const { open, reason, words } = require('./report.cjs');
const { settings, add } = open();
const { files, passing, failing, hung, marker, starts, cache } = settings;
const exit = process.exit.bind(process);

/** Import a module of the project's vitest. */
async function own(name) {
  const near = createRequire(join(process.cwd(), 'package.json'));
  return import(pathToFileURL(near.resolve(name)).href);
}

/** What is added to the end of every file of tests: notes of each start, and tests that must pass and fail. */
function addition(file) {
  const q = JSON.stringify;
  return `
;import * as $vitest from 'vitest';
import { createRequire as $require } from 'node:module';
{
  const { appendFileSync } = $require(import.meta.url)('fs');
  const names = (task) => { const all = []; for (let t = task; t && t.suite !== t && t.type !== undefined; t = t.suite) if (t.name && t.filepath === undefined) all.unshift(t.name); return all; };
  const note = (kind, context) => { const at = names(context.task ?? context.meta); appendFileSync(${q(starts)}, JSON.stringify({ kind, file: ${q(file)}, name: at.join(' > ') }) + '\\n'); return at.join(' > '); };
  const hung = ${q(hung.filter(([at]) => at === file).map(([, name]) => name))};
  $vitest.beforeEach((context) => { if (hung.includes(note('start', context))) throw new Error(${q(marker)}); });
  $vitest.afterEach((context) => { note('stop', context); });
  ${passing ? `$vitest.test(${q(passing)}, () => { $vitest.expect(1).toBe(1); });` : ''}
  ${passing ? `$vitest.test(${q(failing)}, () => { $vitest.expect(1).toBe(2); });` : ''}
}
`;
}

const targets = new Set();
const plugin = {
  name: 'canaries',
  enforce: 'pre',
  transform(code, id) {
    const added = extended(code, id);
    return added === code ? null : { code: added, map: null };
  },
};

/** Return the code of a module, with the addition if it is a file of tests that has none. */
function extended(code, id) {
  const file = id.split('?')[0];
  return targets.has(file) && !code.includes(marker) ? code + addition(file) : code;
}

/** Extend the files of projects within the project, which take no plugin from outside. */
function extendProjects(vitest) {
  for (const project of vitest.projects ?? []) {
    const server = project.vite ?? project.server;
    const containers = [server?.pluginContainer, ...Object.values(server?.environments ?? {}).map((e) => e.pluginContainer)];
    for (const container of new Set(containers.filter(Boolean))) {
      const transform = container.transform.bind(container);
      container.transform = (code, id, ...rest) => transform(extended(code, id), id, ...rest);
    }
  }
}

/** Report the tests below a task. */
function tell(file, task, path) {
  const names = [...path, words(task.name)];
  if (task.type === 'suite' || task.tasks) {
    for (const child of task.tasks ?? []) tell(file, child, names);
    if (task.result?.state === 'fail' && !(task.tasks ?? []).some((child) => child.result?.state === 'fail')) {
      add({ kind: 'test', file, names, outcome: 'failed', ms: 0, message: reason(task.result.errors?.[0]) });
    }
    return;
  }
  const state = task.result?.state;
  const message = reason(task.result?.errors?.[0]);
  let outcome = state === 'pass' ? 'passed' : state === 'fail' ? 'failed' : 'skipped';
  if (state === 'run' || (task.mode === 'run' && state === undefined)) outcome = 'failed';
  if (outcome === 'failed' && message.includes(marker)) outcome = 'hung';
  add({ kind: 'test', file, names, outcome, ms: task.result?.duration ?? 0, message: outcome === 'failed' ? message : '' });
}

/** Return what makes a runner; only where that cannot be loaded is the fault nobody's but the environment's. */
async function runner() {
  try {
    return (await own('vitest/node')).createVitest;
  } catch (error) {
    add({ kind: 'broken', message: reason(error) });
    throw error;
  }
}

async function main() {
  const createVitest = await runner();
  const options = {
    watch: false, run: true, bail: 0, passWithNoTests: true, allowOnly: true, reporters: [{}],
    coverage: { enabled: false }, typecheck: { enabled: false }, outputFile: undefined, cache: false,
  };
  const vitest = await createVitest('test', options, { plugins: [plugin], cacheDir: cache, clearScreen: false });
  const find = vitest.globTestSpecifications ?? vitest.globTestSpecs ?? vitest.globTestFiles;
  for (const found of await find.call(vitest, files)) targets.add(found.moduleId ?? found[1] ?? found);
  for (const file of targets) add({ kind: 'found', file });
  extendProjects(vitest);
  await vitest.start(files);
  for (const file of vitest.state.getFiles()) {
    const { filepath, result } = file;
    if (result?.state === 'fail' && result.errors?.length) {
      add({ kind: 'file', file: filepath, message: reason(result.errors[0]) || 'it cannot be loaded' });
    }
    for (const task of file.tasks ?? []) tell(filepath, task, []);
    add({ kind: 'loaded', file: filepath });
  }
  for (const error of vitest.state.getUnhandledErrors?.() ?? []) console.error(reason(error));
  add({ kind: 'end' });
  exit(0);
}

main().catch((error) => {
  console.error(error);
  exit(3);
});
