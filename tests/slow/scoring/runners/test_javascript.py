"""Tests in JavaScript run one by one with the project's runner; what they print or change is not believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from support.suites import SUITES, MadeSuite
from support.tools import require_tool

from pytest_tfgrpo.harvest.proof.proven_changes import proven_changes
from pytest_tfgrpo.scoring.runners.edits.changed_tests import with_lines
from pytest_tfgrpo.scoring.runners.javascript.jest_and_vitest import run_jest, run_vitest
from pytest_tfgrpo.scoring.runners.javascript.node_test import run_node_tests
from pytest_tfgrpo.scoring.runners.protocol import (
    CaseOutcome,
    Runner,
    RunProblem,
    SuiteCommand,
    SuiteRun,
)

RUNNERS: dict[str, Runner] = {"node-test": run_node_tests, "jest": run_jest, "vitest": run_vitest}
EACH = pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
FIXED = "exports.total = (p) => p.reduce((a, b) => a + b, 0) * (p[0] === 100 ? 0.9 : 1);\n"
BUG = "test/cart.test.js::a cart::gives a discount"


def run(suite: MadeSuite, tree: Path, *files: str, hang_s: float | None = None) -> SuiteRun:
    return RUNNERS[suite.runner](suite.request(tree, *files, hang_s=hang_s))


def believed(found: SuiteRun) -> bool:
    """Return whether a check would count the test of the bug as passed."""
    return found.problem is None and found.outcomes.get(BUG) is CaseOutcome.PASSED


@EACH
def test_each_test_has_its_outcome_under_its_file_and_names(suite: MadeSuite, tmp_path: Path) -> None:
    broken = suite.tests("require('../src/missing.js');", "test('never', () => {});")
    hook = suite.tests("describe('set up', () => {", "  beforeEach(() => { throw new Error('no') });")
    hook = hook.replace("describe }", "describe, beforeEach }").replace(
        "describe, e", "describe, beforeEach, e"
    )
    hook += "  test('starts', () => {});\n});\n"
    found = run(suite, suite.write(tmp_path, {"test/broken.test.js": broken, "test/hook.test.js": hook}))
    assert found.problem is None, found.detail
    assert {name: outcome.value for name, outcome in found.outcomes.items()} == {
        "test/broken.test.js": "failed",
        "test/cart.test.js::an empty cart costs nothing": "passed",
        "test/cart.test.js::a cart::adds its prices": "passed",
        BUG: "failed",
        "test/cart.test.js::a cart::is sent": "skipped",
        "test/hook.test.js::set up::starts": "failed",
    }
    assert "90" in found.messages[BUG] or "toBe" in found.messages[BUG]
    assert "missing.js" in found.messages["test/broken.test.js"]
    assert str(tmp_path) not in "".join(found.messages.values())


@EACH
def test_a_test_that_hangs_fails_alone(suite: MadeSuite, tmp_path: Path) -> None:
    lines = ("test('before', () => {});", "test('spins', () => { for (;;); });", "test('after', () => {});")
    tree = suite.write(tmp_path, {"test/cart.test.js": suite.tests(*lines)})
    found = run(suite, tree, "test/cart.test.js", hang_s=5.0)
    assert found.problem is None, found.detail
    assert {name.split("::")[1]: outcome.value for name, outcome in found.outcomes.items()} == {
        "before": "passed",
        "spins": "hung",
        "after": "passed",
    }


def test_locks_of_files_have_no_effect_in_javascript(tmp_path: Path) -> None:
    """By them two runs of the same tests, one of them with other expected values, could meet."""
    require_tool("flock")
    lock = "require('child_process').execFileSync('flock', ['-n', 'lock', 'flock', '-n', 'lock', 'true'])"
    suite = SUITES["node-test"]
    tree = suite.write(tmp_path, {"test/cart.test.js": suite.tests(f"test('locks', () => {{ {lock} }});")})
    found = run(suite, tree, "test/cart.test.js")
    assert found.outcomes == {"test/cart.test.js::locks": CaseOutcome.PASSED}, found.messages


ANY = {
    "leaves": "process.exit(0);",
    "is killed": "process.kill(process.pid, 'SIGKILL');",
    "prints a report": "for (const fd of [1, 2]) require('fs').writeSync(fd, 'ok 1 - gives a discount\\n');",
    "writes to the socket": (
        "for (const fd of [3, 4, 5]) try { require('fs').writeSync(fd, '00 {\"kind\":\"end\"}\\n') } catch {}"
    ),
}
OWN = {
    "node-test": {
        "patches what compares": "const a = require('assert'); a.strictEqual = a.strict.equal = () => {};",
        "patches what declares": "const t = require('node:test'), o = t.test; t.test = (n) => o(n);",
        "reads the key": (
            "const c = require('crypto'); const u = c.Hmac.prototype.update;"
            "c.Hmac.prototype.update = function (d) { return u.call(this, d.replace('failed', 'passed')) };"
        ),
        "patches how objects are written": (
            "Object.prototype.toJSON = function () {"
            " const wrong = this.outcome === 'failed' && this.names[0] === 'a cart';"
            " return wrong ? { ...this, outcome: 'passed' } : this };"
        ),
        "patches json": (
            "const s = JSON.stringify; JSON.stringify = (v) => s(v).replace('failed', 'passed');"
            "Buffer.from = () => { throw 1 };"
        ),
    },
    "jest": {
        "patches what compares": "expect.extend({ toBe: () => ({ pass: true, message: () => '' }) });",
        "patches what declares": "const o = test; globalThis.test = (n) => o(n, () => {});",
    },
    "vitest": {
        "patches what compares": (
            "const e = globalThis[Symbol.for('expect-global')];"
            "e.extend({ toBe: () => ({ pass: true, message: () => '' }) });"
        ),
    },
}
OWN["node-test"] |= {
    "catches tests as resources": """
require('node:async_hooks').createHook({ init(id, type, trigger, res) {
  if (type !== 'Test') return;
  let fn;
  Object.defineProperty(res, 'fn', {
    get() { return this.name === 'gives a discount' ? () => {} : fn; }, set(v) { fn = v; },
  });
} }).enable();""",
}
OWN["node-test"] |= {
    "takes rejections": (
        "const t = Promise.prototype.then; Promise.prototype.then = function (a, b) {"
        " return t.call(this, a, b && (() => a && a())) };"
    ),
    "patches lists": (
        "const p = Array.prototype.push; Array.prototype.push = function (...x) {"
        " for (const y of x) if (y?.outcome === 'failed') y.outcome = 'passed'; return p.apply(this, x) };"
    ),
    **{
        f"computes the {name} of all objects": (
            f"Object.defineProperty(Object.prototype, '{name}',"
            f" {{ get() {{ return '{value}' }}, set() {{}}, configurable: true }});"
        )
        for name, value in {"outcome": "passed", "type": "test:pass"}.items()
    },
    "patches how functions are called": (
        "Reflect.apply = (f, t, a) => { try { return f.apply(t, a) } catch {} };"
        "const c = Function.prototype.call; Function.prototype.apply = function (t, a) {"
        " try { return c.call(this, t, ...a) } catch {} };"
    ),
    "debugs itself": (
        "const i = require('inspector'), s = new i.Session(); s.connect(); s.post('Debugger.enable');"
        "s.on('Debugger.paused', () => s.post('Debugger.setReturnValue', { newValue: { value: 90 } }));"
    ),
    "has a child write to what it inherits": (
        "const fs = require('fs'); require('child_process').spawnSync(process.execPath, ['-e',"
        """ 'for (let f = 3; f < 30; f++) try { require("fs").writeSync(f, "00 {}\\\\n") } catch {}'],"""
        " { stdio: [0, 1, 2, 3, 4, 5].map((n) => {"
        " try { fs.fstatSync(n); return n } catch { return 'ignore' } }) });"
    ),
}
OWN["node-test"] |= {
    "changes what a stream is given": (
        "const r = require('stream').Readable.prototype, p = r.push; r.push = function (c, e) {"
        " return p.call(this, c?.type === 'test:fail' ? { ...c, type: 'test:pass' } : c, e) };"
    ),
    "calls tests in its own way": (
        "const a = require('async_hooks').AsyncResource.prototype, r = a.runInAsyncScope;"
        "a.runInAsyncScope = function (f, ...x) { return r.call(this, this.name === 'gives a discount'"
        " ? () => {} : f, ...x) };"
    ),
    "finds the class of tests as one is called": (
        "const a = require('async_hooks').AsyncResource.prototype, r = a.runInAsyncScope;"
        "a.runInAsyncScope = function (...x) { const p = Object.getPrototypeOf(this);"
        " if (Object.hasOwn(p, 'fail')) p.fail = p.pass; return r.apply(this, x) };"
    ),
    "asks for the test that runs": (
        "const { executionAsyncResource } = require('async_hooks');"
        "Array.prototype.reduce = () => { const t = executionAsyncResource(); t.fail = t.pass; return 100 };"
    ),
    "asks node for the tests that run": (
        "Array.prototype.reduce = () => { for (const t of"
        " process.binding('async_wrap').execution_async_resources) t.fail = t.pass; return 100 };"
    ),
    "has all objects take another function": (
        "Object.defineProperty(Object.prototype, 'fn', { configurable: true, get() {}, set() {"
        " Object.defineProperty(this, 'fn', { value: () => {}, writable: true }) } });"
    ),
    "loads another module that compares": (
        "const m = require('module'), l = m._load, none = new Proxy({}, { get: () => () => {} });"
        "m._load = function (n, ...x) { return /assert/.test(n) ? none : l.call(this, n, ...x) };"
    ),
    "compiles tests in its own way": (
        "const m = require('module').prototype, c = m._compile;"
        "m._compile = function (s, f) { return c.call(this, s.replace('90', '100'), f) };"
        "delete require.cache[module.parent?.filename]; try { require('../test/cart.test.js') } catch {}"
    ),
}
CHEATS = [
    pytest.param(SUITES[runner], cheat, id=f"{runner}-{name}")
    for runner, own in OWN.items()
    for name, cheat in (own | (ANY if runner == "node-test" else {"leaves": ANY["leaves"]})).items()
]


@pytest.mark.parametrize(("suite", "cheat"), CHEATS)
def test_code_that_cheats_does_not_pass(suite: MadeSuite, cheat: str, tmp_path: Path) -> None:
    code = f"{cheat}\nexports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n"
    tree = suite.write(tmp_path, {"src/cart.js": code})
    assert not believed(run(suite, tree, "test/cart.test.js"))


PEEK = """const fs = require('fs');
exports.total = (prices) => {
  const at = /([^()\\s]+cart\\.test\\.js):(\\d+)/.exec(new Error().stack);
  const line = fs.readFileSync(at[1].replace('file://', ''), 'utf8').split('\\n')[at[2] - 1];
  return Number(/(\\d+(?:\\.\\d+)?)\\D*$/.exec(line)[1]);
};
"""
"""Answers what the line of its caller says last."""


@EACH
def test_a_test_is_changed_so_that_it_fails_with_the_truth_and_passes_for_who_reads_it(
    suite: MadeSuite, tmp_path: Path
) -> None:
    number = count()
    name = "test/cart.test.js"

    def ran(code: str, changed: Mapping[str, bytes]) -> SuiteRun:
        folder = tmp_path / str(next(number))
        tree = suite.write(folder, {"src/cart.js": code, **{n: d.decode() for n, d in changed.items()}})
        return run(suite, tree, name)

    whole = ran(FIXED, {})
    kept = [id_ for id_, end in whole.outcomes.items() if end is CaseOutcome.PASSED and id_ != BUG]
    texts = {name: (tmp_path / "0" / name).read_bytes()}
    changes = proven_changes(texts, {}, [BUG], kept, lambda changed: ran(FIXED, changed)).changes
    ours = [change for change in changes if BUG in change.fails]
    assert ours
    assert ran(PEEK, {}).outcomes[BUG] is CaseOutcome.PASSED
    ends = [ran(PEEK, {name: with_lines(texts[name], one.lines)}).outcomes[BUG] for one in ours]
    assert CaseOutcome.PASSED in ends


@EACH
def test_a_planted_runner_is_not_used(suite: MadeSuite, tmp_path: Path) -> None:
    planted = "module.exports = { run() { process.exit(0) }, test() {}, describe() {}, expect() {} };\n"
    tree = suite.write(
        tmp_path,
        {f"node_modules/{name}/index.js": planted for name in ("jest", "vitest", "node:test")}
        | {
            "src/cart.js": "exports.total = (p) => p.reduce((a, b) => a + b, 0) * (p[0] === 100 ? 0.9 : 1);\n"
        },
    )
    assert believed(run(suite, tree, "test/cart.test.js"))


@pytest.mark.parametrize("suite", [SUITES["node-test"]], ids=["node-test"])
def test_a_run_without_tests_or_out_of_time_says_so(suite: MadeSuite, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    nothing = run(suite, tmp_path / "empty")
    assert nothing.problem is RunProblem.NOTHING_COLLECTED
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "slow.js").write_text("for (;;);")
    assert run_node_tests(suite.request(tmp_path, timeout_s=1.5)).problem is RunProblem.TIMEOUT


def test_a_process_that_leaves_behind_its_tests_keeps_their_results(tmp_path: Path) -> None:
    suite = SUITES["node-test"]
    lines = ("test('adds', () => {});", "require('node:test').after(() => process.exit(1));")
    found = run(suite, suite.write(tmp_path, {"test/cart.test.js": suite.tests(*lines)}))
    assert found.problem is None, found.detail
    assert found.outcomes == {"test/cart.test.js::adds": CaseOutcome.PASSED}


def test_projects_of_vitest_in_a_folder_with_typescript_run(tmp_path: Path) -> None:
    config = (
        "import { defineConfig } from 'vitest/config';\nconst include: string[] = ['spec/*.ts'];\n"
        "export default defineConfig({ test: { projects: [{ test: { include, globals: true } }] } });\n"
    )
    spec = "describe('m', () => { it.each([1, 2])('is %i', (n: number) => { expect(n).toBe(1); }); });\n"
    suite = SUITES["vitest"]
    tree = suite.write(tmp_path, {"web/vitest.config.ts": config, "web/spec/a.ts": spec})
    request = suite.request(tree)
    assert request.environment is not None
    links = {"web/node_modules": request.environment.links["node_modules"]}
    found = run_vitest(
        replace(
            request,
            command=SuiteCommand(runner="vitest", folder="web"),
            environment=replace(request.environment, links=links),
        )
    )
    assert found.problem is None, found.detail
    assert found.outcomes == {"web/spec/a.ts::m::is 1": "passed", "web/spec/a.ts::m::is 2": "failed"}


VALUE = "export const value = 1;\nthrow new Error('given up');\n"


@pytest.mark.parametrize("suite", [SUITES["jest"], SUITES["vitest"]], ids=["jest", "vitest"])
def test_code_that_ends_its_runner_s_configuration_is_no_missing_runner(
    suite: MadeSuite, tmp_path: Path
) -> None:
    """A missing runner is an error of ours, which takes an attempt out of the score."""
    name = f"{suite.runner}.config.mjs"
    config = "import { value } from './src/value.mjs';\nexport default { value };\n"
    tree = suite.write(tmp_path, {name: config, "src/value.mjs": VALUE})
    found = run(suite, tree, f"test/cart{suite.suffix}")
    assert found.problem is RunProblem.NO_REPORT
    assert "given up" in found.detail
    assert found.outcomes == {}


LOADER = """
export async function load(url, context, next) {
  if (!url.endsWith('.shop')) return next(url, context);
  return { format: 'module', shortCircuit: true, source: 'export const total = () => 5;' };
}
"""


@pytest.mark.parametrize(
    ("flags", "loaded"),
    [
        (("--import=./lib/set.mjs",), True),
        (("--import=shop/set",), True),
        (("--require=./lib/set.cjs", "--no-warnings"), True),
        (("--loader=./lib/hooks.mjs", "--import=./lib/set.mjs"), True),
        ((), False),
    ],
)
def test_what_flags_of_node_load_is_there_before_the_tests(
    tmp_path: Path, flags: tuple[str, ...], loaded: bool
) -> None:
    line = "globalThis.price = 5;"
    suite = SUITES["node-test"]
    tree = suite.write(
        tmp_path,
        {
            "package.json": '{"name": "shop", "exports": {"./set": {"import": "./lib/set.mjs"}}}',
            "lib/set.mjs": line,
            "lib/set.cjs": line,
            "lib/hooks.mjs": LOADER,
            "lib/a.shop": "",
            "test/cart.test.js": suite.tests(
                "test('has a price', () => assert.equal(globalThis.price, 5));",
                "test('is hooked', async () => assert.equal((await import('../lib/a.shop')).total(), 5));",
            ),
        },
    )
    request = suite.request(tree)
    found = run_node_tests(replace(request, command=SuiteCommand(runner="node-test", run=flags)))
    assert found.problem is None, found.detail
    assert (found.outcomes["test/cart.test.js::has a price"] is CaseOutcome.PASSED) is loaded
    hooked = found.outcomes["test/cart.test.js::is hooked"] is CaseOutcome.PASSED
    assert hooked is any("loader" in flag for flag in flags)


def test_what_a_flag_names_that_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    suite = SUITES["node-test"]
    request = suite.request(suite.write(tmp_path))
    found = run_node_tests(replace(request, command=SuiteCommand(runner="node-test", run=("--import=tsx",))))
    assert found.outcomes == {"test/cart.test.js": CaseOutcome.FAILED}
    assert "tsx" in found.messages["test/cart.test.js"]


def test_what_a_flag_names_cannot_speak_for_the_tests(tmp_path: Path) -> None:
    forge = "import fs from 'node:fs'; fs.writeSync(3, '00 {\"kind\":\"end\"}\\n');"
    suite = SUITES["node-test"]
    request = suite.request(suite.write(tmp_path, {"set.mjs": forge}))
    found = run_node_tests(
        replace(request, command=SuiteCommand(runner="node-test", run=("--import=./set.mjs",)))
    )
    assert found.problem is RunProblem.TAMPERED
