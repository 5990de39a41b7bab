// Runs one file of tests with node:test, and reports each test. It is the program and its reporter in one module,
// so that both share the report, and nothing else can: what is exported works once, before the file is loaded.
import module, { createRequire, syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import nodeTest from 'node:test';

const require = createRequire(import.meta.url);
const { open, path, reason, words } = require('./report.cjs');


const { settings, add } = open();
const { files, passing, failing, early, hung, marker, starts, loads } = settings;
const [file] = files;
const { appendFileSync } = require('node:fs');
const { test, beforeEach, afterEach } = nodeTest;
Object.freeze(nodeTest);
const GRACE_MS = 2000;
const exit = process.exit.bind(process);
const { executionAsyncResource } = require('node:async_hooks');
const called = [];
const getOwn = Object.getOwnPropertyDescriptor;
let guarded = false;
let reporting = false;
let ended = false;

/** The reporter, which node calls when the first test is declared. */
export default async function* reporter(source) {
  if (reporting) return;
  reporting = true;
  const names = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      names.length = data.nesting;
      names[data.nesting] = words(data.name);
    } else if (type === 'test:pass' || type === 'test:fail') {
      const record = recordOf(type, data, names);
      if (record) add(record);
      if (data.name === failing && data.nesting === 0) setTimeout(leave, GRACE_MS).unref();
    }
  }
  finish();
}

/** End the report; what keeps the process open afterwards is not waited for. */
function finish() {
  if (!ended) add({ kind: 'end' });
  ended = true;
}

/** Leave once all tests are reported, where a server or a timer of the project would keep the process. */
function leave() {
  finish();
  exit(0);
}

/** What is reported of an event; nothing of a group of tests that failed with one of them. */
function recordOf(type, data, names) {
  const { error, type: group, duration_ms: took } = data.details ?? {};
  const failure = error?.failureType;
  if (group === 'suite' && (type === 'test:pass' || failure === 'subtestsFailed')) return null;
  const cause = reason(error?.cause ?? error);
  let outcome = type === 'test:pass' ? 'passed' : 'failed';
  if (data.skip !== undefined || data.todo !== undefined) outcome = 'skipped';
  if (outcome === 'failed' && cause.includes(marker)) outcome = 'hung';
  const named = path(names, data.nesting, words(data.name));
  if (outcome === 'passed' && guarded && group !== 'suite' && !passed(named)) {
    return { kind: 'test', file, names: named, outcome: 'failed', ms: 0, message: 'it is reported as passed, and did not pass' };
  }
  return { kind: 'test', file, names: named, outcome, ms: took ?? 0, message: outcome === 'failed' ? cause : '' };
}

/** Return whether node holds a test of these names as passed that was not asked for before. */
function passed(names) {
  for (let at = 0; at < called.length; at += 1) {
    const one = called[at];
    if (one === null || getOwn(one, 'passed')?.value !== true) continue;
    let place = names.length - 1;
    let above = one;
    while (place >= 0 && above && words(above.name) === names[place]) {
      above = above.parent;
      place -= 1;
    }
    if (place < 0 && above && !above.parent) {
      called[at] = null;
      return true;
    }
  }
  return false;
}

/**
 * Let nobody between node and its tests, of whose class one is given: what it inherits and what each test holds is its
 * own, whatever is put into the prototypes of all objects, and each that is called is noted.
 */
function guard(first) {
  if (first?.constructor?.name !== 'Test' || getOwn(first, 'passed') === undefined) return;
  const own = Object.getPrototypeOf(first);
  const above = Object.getPrototypeOf(own);
  const { runInAsyncScope } = above;
  const apply = Reflect.apply;
  for (const key of Reflect.ownKeys(above)) {
    if (key !== 'runInAsyncScope' && !Object.hasOwn(own, key)) Object.defineProperty(own, key, { value: above[key] });
  }
  for (const key of Reflect.ownKeys(first)) {
    if (!Object.hasOwn(own, key)) Object.defineProperty(own, key, { value: undefined, writable: true });
  }
  Object.defineProperty(own, 'runInAsyncScope', {
    value(...said) {
      called[called.length] = this;
      return apply(runInAsyncScope, this, said);
    },
  });
  called[0] = first;
  guarded = true;
}

/** Show nobody the tests: node keeps each as a resource, whose function could be exchanged. */
function hideTests() {
  const hooks = require('node:async_hooks');
  const { createHook } = hooks;
  const inPlace = new WeakMap();
  const shown = (resource) => {
    if (!['Test', 'Suite', 'TestHook'].includes(resource?.constructor?.name)) return resource;
    if (!inPlace.has(resource)) inPlace.set(resource, {});
    return inPlace.get(resource);
  };
  hooks.executionAsyncResource = () => shown(executionAsyncResource());
  const { binding } = process;
  process.binding = (name) => {
    if (name === 'async_wrap') throw new Error('not available while tests are checked');
    return binding.call(process, name);
  };
  hooks.createHook = (callbacks) => {
    const { init } = callbacks;
    if (typeof init !== 'function') return createHook(callbacks);
    return createHook({ ...callbacks, init: (id, type, trigger, resource) => init.call(callbacks, id, type, trigger, shown(resource)) });
  };
  syncBuiltinESMExports();
}

/** Load what the project's flags of node name, as node would before its main program: found from the folder of the run. */
async function preload() {
  const here = join(process.cwd(), 'preload.js');
  const importModuleDynamically = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  for (const [kind, name] of loads) {
    if (kind === 'require') createRequire(here)(name);
    else if (kind === 'loader') module.register(name, pathToFileURL(here));
    else if (importModuleDynamically) await new vm.Script(`import(${JSON.stringify(name)})`, { filename: here, importModuleDynamically }).runInThisContext();
    else await import(pathToFileURL(createRequire(here).resolve(name)).href);
  }
}

/** Declare a test that passes and wait for it, load the file, then declare one that passes and one that fails. */
async function main() {
  const { equal } = require('node:assert');
  let first;
  await test(early, () => {
    first = executionAsyncResource();
  });
  guard(first);
  const counts = new Map();
  const note = (kind, name) => appendFileSync(starts, `${JSON.stringify({ kind, file, name })}\n`);
  const blamed = hung.filter(([at]) => at === file).map(([, name]) => name);
  beforeEach((context) => {
    const name = words(context?.name);
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    note('start', `${name} #${nth}`);
    if (blamed.includes(`${name} #${nth}`)) throw new Error(marker);
  });
  afterEach((context) => {
    const name = words(context?.name);
    note('stop', `${name} #${counts.get(name)}`);
  });
  process.exit = (code) => {
    // what the tests did before is reported first
    process.exitCode = code;
    setTimeout(() => exit(code), GRACE_MS).unref();
  };
  hideTests();
  process.argv.splice(1, 1, file);
  try {
    await preload();
    await import(pathToFileURL(file).href);
  } catch (error) {
    add({ kind: 'file', file, message: reason(error) || 'it cannot be loaded' });
  }
  add({ kind: 'loaded', file });
  if (passing) {
    test(passing, () => equal(1, 1));
    test(failing, () => equal(1, 2));
  }
}

main();
