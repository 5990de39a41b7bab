"""Cheats at hidden tests that came later: around pytest, and against what Python says of returns."""

from __future__ import annotations

from support.cheats import REPORTS
from support.cheats_inside import CART, INSIDE, SAME

FLIP = """
def _gen():
    try: yield
    except BaseException: return None
def _flip():
    for f in _frames():
        if f.f_code.co_name == '_multicall':
            g = _gen()
            next(g)
            f.f_locals['teardowns'].append(g)
            break
"""
"""Has the call of a hook forget what is raised, on any Python."""
RETURNS: dict[str, str] = {}
"""Tests that fail are reported as passed, and seem to return."""
RETURNS["adds to what a call of a hook does at its end"] = (
    CART + INSIDE + FLIP + "def total(prices):\n    _flip()\n    return None\n"
)
RETURNS["runs the code of its test with other names"] = (
    CART
    + INSIDE
    + FLIP
    + r"""
import types
def total(prices):
    f = sys._getframe(1)
    types.FunctionType(f.f_code, {**f.f_globals, 'total': lambda p: Same()})()
    _flip()
    return None
"""
)
RETURNS["has pytest run its test within itself, with an answer that fits"] = (
    CART
    + INSIDE
    + FLIP
    + r"""
import _pytest.python as p
_within = []
def total(prices):
    if _within: return Same()
    _within.append(1)
    try: p.pytest_pyfunc_call(next(f.f_locals['item'] for f in _frames() if 'item' in f.f_locals))
    finally: _within.clear()
    _flip()
    return None
"""
)
RETURNS["runs its test in a thread, with an answer that fits"] = (
    CART
    + INSIDE
    + FLIP
    + r"""
import threading
def total(prices):
    if threading.current_thread() is not threading.main_thread(): return Same()
    t = threading.Thread(target=sys._getframe(1).f_globals[sys._getframe(1).f_code.co_name])
    t.start()
    t.join()
    _flip()
    return None
"""
)
RETURNS["says by itself that its test returned"] = (
    CART
    + INSIDE
    + FLIP
    + r"""
def total(prices):
    m = sys.monitoring
    m.set_local_events(4, sys._getframe(1).f_code, m.events.PY_RETURN | m.events.PY_START)
    _flip()
    return None
"""
)
LATER: dict[str, str] = {}
"""Modules in place of shop/cart.py, which then has no `total`: each scores nothing."""
LATER["reads its memory by a name of another class"] = (
    CART.replace("return None", "return sum(prices)")
    + r"""
class S(str): pass
open(S('/proc/self/mem'), 'rb').close()
"""
)
LATER["reads its memory by a link"] = (
    CART.replace("return None", "return sum(prices)")
    + r"""
import os
os.symlink('/proc/self/mem', '/tmp/x%d' % os.getpid())
open('/tmp/x%d' % os.getpid(), 'rb').close()
"""
)
LATER["reports as the process ends"] = (
    CART
    + INSIDE
    + REPORTS
    + r"""
import atexit
def _end():
    for report in _reports(): _config.hook.pytest_runtest_logreport(report=report)
    sys.audit('pytest_results', 'end', 0)
atexit.register(_end)
def total(prices): sys.exit(0)
"""
)
LATER["seems to be a worker of xdist"] = (
    CART
    + INSIDE
    + r"""
os.environ.update(PYTEST_XDIST_WORKER='gw0', PYTEST_CURRENT_TEST='x', PYTEST_ADDOPTS='--co')
_config.workerinput = {'workerid': 'gw0'}
_config.option.collectonly = True
"""
)
LATER["changes options after the start"] = (
    CART
    + INSIDE
    + r"""
o = _config.option
for n in ('setuponly', 'setupshow', 'runxfail', 'collectonly'): setattr(o, n, True)
"""
)
LATER["has tests only set up"] = (
    CART
    + INSIDE
    + REPORTS
    + r"""
def count(prices):
    _config.option.setuponly = True
    return len(prices)
"""
)
LATER["adds a fixture that each test uses"] = (
    CART
    + INSIDE
    + r"""
import pytest
fm = _session._fixturemanager
def _fx():
    yield
class P:
    @pytest.fixture(autouse=True)
    def _quiet(self, request, monkeypatch):
        import tests.test_cart as t
        monkeypatch.setattr(t, 'total', lambda p: Same(), raising=False)
        yield
_pm.register(P(), 'quiet'); fm.parsefactories(P(), '')
def total(prices): return None
"""
)
LATER["stops the time"] = (
    CART
    + INSIDE
    + r"""
import time, _pytest.timing as t
time.time = time.perf_counter = lambda: 0.0
"""
)
LATER["is a module of another class"] = (
    CART
    + SAME
    + r"""
import types
class M(types.ModuleType):
    def __getattribute__(self, n):
        if n == 'total':
            f = sys._getframe(1)
            return lambda p: Same()
        return types.ModuleType.__getattribute__(self, n)
sys.modules[__name__].__class__ = M
"""
)
LATER["gives who imports it other builtins"] = (
    CART
    + INSIDE
    + r"""
import builtins
_i = builtins.__import__
def _imp(name, *a, **k):
    m = _i(name, *a, **k)
    if name == 'shop.cart':
        g = sys._getframe(1).f_globals
        g['__builtins__'] = {**vars(builtins), 'AssertionError': type('A', (Exception,), {})}
    return m
builtins.__import__ = _imp
"""
)
LATER["takes what ends a process"] = (
    CART
    + INSIDE
    + r"""
sys.excepthook = sys.unraisablehook = lambda *a: None
import threading; threading.excepthook = lambda *a: None
def total(p): raise SystemExit(0)
"""
)
LATER["stops the session as if all were well"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    _session.shouldstop = 'done'; _session.shouldfail = False
    _session.testsfailed = 0
    _session.items[:] = []
    return None
"""
)
LATER["gives the session other tests"] = (
    CART
    + INSIDE
    + r"""
class L(list):
    def __iter__(self): return iter([])
_session.items = L()
def count(p):
    _session.items = []
    return len(p)
"""
)
LATER["leaves the reporter no depth"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    sys.setrecursionlimit(len(list(_frames())) + 12)
    return None
"""
)
LATER["leaves the reporter no memory"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    import resource
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 33))
    return None
"""
)
LATER["leaves the reporter no files"] = (
    CART
    + INSIDE
    + r"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
"""
)
LATER["puts a socket of its own in the place of the reporter's"] = (
    CART
    + INSIDE
    + r"""
import socket
for fd in range(3, 300):
    try: s = os.readlink('/proc/self/fd/%d' % fd)
    except OSError: continue
    if s.startswith('socket:'):
        a, b = socket.socketpair(); os.dup2(a.fileno(), fd)
"""
)
LATER["has a child write to the reporter's socket"] = (
    CART
    + INSIDE
    + r"""
import subprocess
for fd in range(3, 300):
    try: s = os.readlink('/proc/self/fd/%d' % fd)
    except OSError: continue
    if s.startswith('socket:'):
        os.set_inheritable(fd, True)
        code = 'import os, time; time.sleep(.3); os.write(%d, b"0" * 32 + b" [[\"e\", 0]]\n")' % fd
        subprocess.Popen([sys.executable, '-c', code], close_fds=False)
"""
)
LATER["looks around as its objects are removed"] = (
    CART
    + INSIDE
    + r"""
import weakref, gc
class D:
    def __del__(self):
        f = sys._getframe(1)
        while f:
            for v in list(f.f_locals.values()):
                if callable(v) and getattr(v, '__name__', '') == 'send':
                    v(('r', 'tests/test_cart.py::test_total', 'call', 'passed', 0.1, ''))
            f = f.f_back
def total(prices):
    for _ in range(50):
        a = D(); a.a = a
        sys.audit('pytest_results', 's', 'x')
    gc.set_threshold(1, 1, 1)
    return None
"""
)
LATER["skips as it is compared"] = (
    CART
    + r"""
class A:
    def __eq__(self, o):
        import pytest
        raise pytest.skip.Exception('x', allow_module_level=True)
    __sub__ = lambda s, o: s
    __hash__ = None
def total(prices): return A()
"""
)
LATER["clears frames of pytest"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    g = [f for f in _frames() if f.f_code.co_name in ('from_call', '_multicall', 'call_and_report')]
    for f in g:
        try: f.clear()
        except RuntimeError: pass
    return None
"""
)
LATER["runs the ends of hooks at once"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    for f in _frames():
        for g in f.f_locals.get('teardowns') or ():
            try: g.send(None)
            except BaseException: pass
    return None
"""
)
LATER["drops the ends of hooks"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    for f in _frames():
        if 'teardowns' in f.f_locals: f.f_locals['teardowns'].clear()
    return None
"""
)
LATER["takes pytest out of its hooks"] = (
    CART
    + INSIDE
    + r"""
def count(prices):
    l = _config.hook.pytest_pyfunc_call._hookimpls
    l.clear()
    return len(prices)
"""
)
LATER["gives a hook another test"] = (
    CART
    + INSIDE
    + r"""
import copy
def total(prices):
    for f in _frames():
        kw = f.f_locals.get('caller_kwargs')
        if kw and 'item' in kw:
            i = copy.copy(kw['item']); i.runtest = lambda: None; kw['item'] = i
    return None
"""
)
LATER["exchanges code of the reporter"] = (
    CART
    + INSIDE
    + r"""
p = _pm.get_plugin('pytest_results')
def _q(item):
    yield
p.pytest_runtest_call.__code__ = _q.__code__
def total(prices): return None
"""
)
LATER["exchanges what the reporter's functions hold"] = (
    CART
    + INSIDE
    + r"""
p = _pm.get_plugin('pytest_results')
f = p.pytest_runtest_logreport
c = dict(zip(f.__code__.co_freevars, f.__closure__))
class N:
    def __init__(s, o): s.o = o
    def __call__(s, nodeid):
        r = sys._getframe(1).f_locals.get('report')
        if r is not None: r.outcome = 'passed'
        return s.o(nodeid)
c['names'].cell_contents = N(c['names'].cell_contents)
"""
)
LATER["changes what the reporter says"] = (
    CART
    + INSIDE
    + r"""
p = _pm.get_plugin('pytest_results')
g = p.pytest_runtest_logreport.__globals__
_t = g['tell']
def tell(*a):
    if len(a) > 4 and a[1] == 'r': a = (*a[:4], 'passed', a[5], '')
    _t(*a)
g['tell'] = tell
"""
)
SCAN = """
_got = []
def _scan(frame):
    while frame:
        for n, v in list(frame.f_locals.items()):
            if n in ('send', 'tampered', 'hear', 'take') and callable(v): _got.append(v)
        frame = frame.f_back
def _forge(f, seen):
    if id(f) in seen or not hasattr(f, '__closure__'): return
    seen[id(f)] = f
    if f.__name__ == 'send':
        for n in ('test_count', 'test_total', 'test_total_of_nothing'):
            for w in ('setup', 'call', 'teardown'):
                f(('r', 'tests/test_cart.py::' + n, w, 'passed', .1, ''))
        f(('e', 0))
        os._exit(0)
    for c in f.__closure__ or ():
        try: v = c.cell_contents
        except ValueError: continue
        if callable(v): _forge(v, seen)
"""
"""Finds what signs reports in the frames of the reporter, and signs reports of its own."""
LATER["handles a signal within the reporter"] = (
    CART
    + INSIDE
    + SCAN
    + r"""
import signal, time
def total(prices):
    signal.signal(signal.SIGALRM, lambda s, f: _scan(f))
    signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
    end = time.time() + 1
    while not _got and time.time() < end:
        for _ in range(50): sys.audit('open', '/x', 'r', 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for g in _got: _forge(g, {})
    return None
"""
)
LATER["has objects end within the reporter"] = (
    CART
    + INSIDE
    + SCAN
    + r"""
import gc
class D:
    def __init__(self): self.me = self
    def __del__(self): _scan(sys._getframe(0))
def total(prices):
    gc.set_threshold(1, 1, 1)
    for _ in range(1000):
        D()
        sys.audit('open', '/x', 'r', 0)
        if _got: break
    gc.set_threshold(700, 10, 10)
    for g in list(_got): _forge(g, {})
    return None
"""
)
