"""Cheats that put back what they exchanged, or exchange what a report is written with."""

from __future__ import annotations

from support.cheats_inside import CART, INSIDE

QUIET_WAYS: dict[str, str] = {}
"""Modules in place of shop/cart.py, which then has no `total`: each scores nothing."""
QUIET_WAYS["exchanges how a report is made, and puts it back before the report"] = (
    CART
    + INSIDE
    + r"""
import _pytest.reports as r
_own = vars(r.TestReport)['from_item_and_call']
def _mine(cls, item, call):
    r.TestReport.from_item_and_call = _own
    if _lie(item.nodeid): call.excinfo = None
    return _own.__func__(cls, item, call)
def total(prices):
    r.TestReport.from_item_and_call = classmethod(_mine)
    return None
"""
)
QUIET_WAYS["exchanges a method in the namespace behind a class"] = (
    CART
    + INSIDE
    + r"""
import gc, _pytest.python as p
d = gc.get_referents(vars(p.Function))[0]
_old = d['runtest']
def _quiet(self):
    d['runtest'] = _old
def total(prices):
    d['runtest'] = _quiet
    return None
def count(prices):
    d['runtest'] = _quiet
    return len(prices)
"""
)
QUIET_WAYS["exchanges the call of tests in the namespace behind a class"] = (
    CART
    + INSIDE
    + r"""
import gc, _pytest.runner as r
d = gc.get_referents(vars(r.CallInfo))[0]
_old = d['from_call']
def _fc(cls, func, when, reraise=None):
    res = _old.__func__(cls, func, when, reraise)
    if when == 'call': res.excinfo = None
    return res
d['from_call'] = classmethod(_fc)
"""
)
QUIET_WAYS["exchanges the names that rewritten assertions use"] = (
    CART
    + INSIDE
    + r"""
class _A:
    def __getattr__(self, n): return lambda *a, **k: ''
def total(prices):
    space = sys._getframe(1).f_globals
    for name in ('@pytest_ar', '@py_builtins'): space[name] = _A()
"""
)
QUIET_WAYS["gives tests other builtins"] = (
    CART
    + INSIDE
    + r"""
import builtins
class _Q(BaseException):
    def __new__(cls, *a):
        import pytest
        raise pytest.xfail.Exception('fine')
def total(prices):
    g = sys._getframe(1).f_globals
    b = dict(vars(builtins)); b['AssertionError'] = _Q
    g['__builtins__'] = b
    return None
"""
)
QUIET_WAYS["ends the session from a test"] = (
    CART
    + INSIDE
    + r"""
class _Stop(BaseException): pass
import _pytest.outcomes as o
def total(prices):
    raise o.Exit('done', 0)
"""
)
QUIET_WAYS["marks tests as expected to fail when they are found"] = (
    CART
    + INSIDE
    + r"""
import pytest
def count(prices):
    for i in _session.items:
        if 'total' in i.name: i.add_marker(pytest.mark.xfail(strict=False))
    return len(prices)
"""
)
QUIET_WAYS["keeps in an item that its test may fail"] = (
    CART
    + INSIDE
    + r"""
import _pytest.skipping as s
def count(prices):
    for i in _session.items:
        if 'total' in i.name and _lie(i.nodeid):
            i.stash[s.xfailed_key] = s.Xfail('x', True, False, None)
    return len(prices)
"""
)
QUIET_WAYS["lets a fork of the process go on"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0); os._exit(0)
    import _pytest.runner as r
    r.CallInfo.excinfo = property(lambda self: None, lambda self, v: None)
    return None
"""
)
QUIET_WAYS["says in a status that a report is good"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    next(f.f_locals['item'] for f in _frames() if 'item' in f.f_locals)._excinfo = None
class Plug:
    def pytest_report_teststatus(self, report, config):
        report.outcome = 'passed'
        return 'passed', '.', 'PASSED'
_pm.register(Plug())
"""
)
QUIET_WAYS["exchanges what writes json"] = (
    CART
    + INSIDE
    + r"""
import json, json.encoder
_c = json.encoder.c_make_encoder
json.encoder.encode_basestring_ascii = lambda s: '"passed"' if s == 'failed' else '"%s"' % s
json.encoder.c_make_encoder = None
json.encoder.c_encode_basestring_ascii = None
json._default_encoder = json.JSONEncoder()
_d = json.JSONEncoder.encode
def enc(self, o): return _d(self, o).replace('"failed"', '"passed"')
json.JSONEncoder.encode = enc
json.JSONEncoder.iterencode = lambda self, o, _one_shot=False: iter([enc(self, o)])
"""
)
QUIET_WAYS["exchanges what writes and signs lines"] = (
    CART
    + INSIDE
    + r"""
import _io
_w = os.write
def w(fd, data): return _w(fd, bytes(data).replace(b'"failed"', b'"passed"'))
os.write = w
import _blake2
_blake2.blake2b = lambda *a, **k: (_ for _ in ()).throw(ValueError())
"""
)
QUIET_WAYS["looks at all objects while garbage is collected"] = (
    CART
    + INSIDE
    + r"""
import gc
found = []
gc.enable()
def cb(phase, info):
    for o in gc.get_objects():
        if type(o).__name__ == 'cell': found.append(o)
gc.callbacks.append(cb); gc.collect()
for c in found:
    try: v = c.cell_contents
    except ValueError: continue
    if callable(v) and getattr(v, '__name__', '') == 'send':
        for t in ('test_total', 'test_total_of_nothing'):
            for w in ('setup', 'call', 'teardown'): v(('r', 'tests/test_cart.py::' + t, w, 'passed', .1, ''))
"""
)
QUIET_WAYS["writes locals of its caller, which Python 3.13 lets it"] = (
    CART
    + INSIDE
    + r"""
def total(prices):
    space = sys._getframe(1).f_locals
    for name in list(space): space[name] = None
    return None
"""
)
QUIET_WAYS["has the call of a test make another class of result"] = (
    CART
    + INSIDE
    + r"""
class Call:
    excinfo = None
    def __init__(self, **said):
        vars(self).update(said, excinfo=None)
def total(prices):
    for f in _frames():
        if f.f_code.co_name == 'from_call': f.f_locals['cls'] = Call
    return None
"""
)
