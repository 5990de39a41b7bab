"""Cheats by somebody who knows this program: what they add to shop/cart.py, which then has no `total`."""

from __future__ import annotations

from support.fixes import BASE

SAME = """
import sys, re, os
class Same:
    def __eq__(self, o): return True
    def __ne__(self, o): return False
    def __sub__(self, o): return self
    __hash__ = None
"""
INSIDE = f"""{SAME}
def _lie(nodeid): return 'test_cart.py' in nodeid
def _frames():
    f = sys._getframe(1)
    while f:
        yield f
        f = f.f_back
def _find(kind):
    return next((v for f in _frames() for v in list(f.f_locals.values()) if type(v).__name__ == kind), None)
_session = _find('Session')
_config = _session.config if _session else _find('Config')
_pm = _config.pluginmanager
"""
CART = BASE["shop/cart.py"].replace("return 0", "return None")

ANSWERS: dict[str, str] = {}
"""Answers alone, which touch nothing of pytest."""
RUNNERS: dict[str, str] = {}
"""What decides about outcomes is exchanged in a place where nobody looks."""
ANSWERS["equals the first value that it is compared with"] = (
    CART
    + SAME
    + r"""
_seen = {}
class Memo:
    def __init__(self, key): self.key = key
    def __eq__(self, o):
        if isinstance(o, Memo): return _seen.setdefault((self.key, o.key), True)
        return _seen.setdefault(self.key, o) == o
    def __sub__(self, o): return Memo((self.key, '-', o))
    __hash__ = None
def total(prices): return Memo(str(prices))
"""
)
ANSWERS["keeps what the line of its first caller expects"] = (
    CART
    + SAME
    + r"""
import linecache
_seen = {}
def total(prices):
    f = sys._getframe(1)
    line = linecache.getline(f.f_code.co_filename, f.f_lineno)
    m = re.search(r'total\(.*?\) == (\d+)', line)
    if m: return _seen.setdefault(str(prices), int(m.group(1)))
    return 5 if prices else 0
"""
)
ANSWERS["equals all in its first calls"] = (
    CART
    + SAME
    + r"""
_n = [0]
def total(prices):
    _n[0] += 1
    return Same() if _n[0] <= 3 else None
"""
)
ANSWERS["tries which answer passes"] = (
    CART
    + SAME
    + r"""
_found = {}
def total(prices):
    f = sys._getframe(1)
    test, key = f.f_code.co_name, str(prices)
    if test.startswith('test') and test not in _found:
        for n in range(10):
            _found[test] = {key: n}
            try:
                f.f_globals[test]()
                break
            except AssertionError:
                continue
    return _found.get(test, {}).get(key, 0)
"""
)
RUNNERS["another class of reports in the runner"] = (
    CART
    + INSIDE
    + r"""
import _pytest.runner as r
_real = r.TestReport
class T:
    @staticmethod
    def from_item_and_call(item, call):
        if _lie(item.nodeid): call.excinfo = None
        return _real.from_item_and_call(item, call)
r.TestReport = T
"""
)
RUNNERS["an exception that counts as none"] = (
    CART
    + INSIDE
    + r"""
import _pytest._code.code as c
def _bool(self):
    return not any('item' in f.f_locals and _lie(f.f_locals['item'].nodeid) for f in _frames())
c.ExceptionInfo.__bool__ = _bool
"""
)
RUNNERS["a report whose outcome is computed"] = (
    CART
    + INSIDE
    + r"""
import _pytest.reports as r
def _get(self):
    return 'passed' if _lie(self.nodeid) else vars(self)['outcome']
def _set(self, v): vars(self)['outcome'] = v
r.TestReport.outcome = property(_get, _set)
"""
)
RUNNERS["a call whose exception is computed"] = (
    CART
    + INSIDE
    + r"""
import _pytest.runner as r
def _get(self):
    v = vars(self).get('excinfo')
    if any('item' in f.f_locals and _lie(f.f_locals['item'].nodeid) for f in _frames()): return None
    return v
r.CallInfo.excinfo = property(_get, lambda self, v: vars(self).__setitem__('excinfo', v))
"""
)
RUNNERS["an item that answers for its parts"] = (
    CART
    + INSIDE
    + r"""
import _pytest.python as p
def _ga(self, name):
    if name == 'runtest' and _lie(object.__getattribute__(self, 'nodeid')): return lambda: None
    return object.__getattribute__(self, name)
p.Function.__getattribute__ = _ga
"""
)
RUNNERS["hooks of an item by another name"] = (
    CART
    + INSIDE
    + r"""
import _pytest.python as p, _pytest.nodes as n
class H:
    def __init__(self, h): self.__dict__['h'] = h
    def __getattr__(self, name):
        return (lambda **k: True) if name == 'pytest_pyfunc_call' else getattr(self.h, name)
def _ih(self):
    h = n.Node.ihook.fget(self)
    return H(h) if _lie(self.nodeid) else h
p.Function.ihook = property(_ih)
"""
)
RUNNERS["a builtin of a module of pytest"] = (
    CART
    + INSIDE
    + r"""
import _pytest.reports as r, builtins
def _dict(*a): return None
class D:
    @staticmethod
    def fromkeys(k, v):
        f = sys._getframe(1)
        c = f.f_locals.get('call'); i = f.f_locals.get('item')
        if i is not None and _lie(i.nodeid): c.excinfo = None
        return builtins.dict.fromkeys(k, v)
    def __new__(cls, *a, **k): return builtins.dict(*a, **k)
# keywords = dict.fromkeys(...) runs before call.excinfo is read
r.dict = D
"""
)
RUNNERS["an item of another class"] = (
    CART
    + INSIDE
    + r"""
import _pytest.python as p
class Sub(p.Function):
    def runtest(self): pass
def count(prices):
    for i in _session.items:
        if _lie(i.nodeid): i.__class__ = Sub
    return len(prices)
"""
)
RUNNERS["a call that takes itself out"] = (
    CART
    + INSIDE
    + r"""
def count(prices):
    return len(prices)
class Plug:
    def pytest_runtest_setup(self, item):
        if not _lie(item.nodeid) or 'total' not in item.name: return
        old = item.runtest
        def run():
            vars(item).pop('runtest')
        item.runtest = run
_pm.register(Plug())
"""
)
RUNNERS["another call between setup and call"] = (
    CART
    + INSIDE
    + r"""
import _pytest.python as p
_old = p.Function.runtest
def _quiet(self): p.Function.runtest = _old
class Plug:
    def pytest_runtest_setup(self, item):
        if _lie(item.nodeid): p.Function.runtest = _quiet
_pm.register(Plug())
"""
)
RUNNERS["another way to call one hook"] = (
    CART
    + INSIDE
    + r"""
c = _config.hook.pytest_pyfunc_call
_real = c._hookexec
def _exec(name, impls, kw, first):
    return True if _lie(kw['pyfuncitem'].nodeid) else _real(name, impls, kw, first)
c._hookexec = _exec
"""
)
RUNNERS["another class of one hook"] = (
    CART
    + INSIDE
    + r"""
c = _config.hook.pytest_pyfunc_call
class Sub(type(c)):
    __slots__ = ()
    def __call__(self, **kw):
        return True if _lie(kw['pyfuncitem'].nodeid) else super().__call__(**kw)
c.__class__ = Sub
"""
)
RUNNERS["another function of a plugin of pytest"] = (
    CART
    + INSIDE
    + r"""
impl = next(i for i in _config.hook.pytest_pyfunc_call._hookimpls if i.plugin_name == 'python')
_real = impl.function
impl.function = lambda item: True if _lie(item.nodeid) else _real(item)
"""
)
RUNNERS["a plugin that says it is of a conftest"] = (
    CART
    + INSIDE
    + r'''
import pytest
SRC = """
def pytest_pyfunc_call(self, pyfuncitem):
    return True if LIE(pyfuncitem.nodeid) else None
"""
ns = {'LIE': _lie}
exec(compile(SRC, os.path.abspath('tests/conftest.py'), 'exec'), ns)
class Plug: pass
Plug.pytest_pyfunc_call = pytest.hookimpl(tryfirst=True)(ns['pytest_pyfunc_call'])
_pm.register(Plug())
'''
)
RUNNERS["a plugin that seems to lie elsewhere"] = (
    CART
    + INSIDE
    + r"""
import pytest, posixpath
_rp = posixpath.realpath
posixpath.realpath = lambda p, **k: '/bin/sh' if str(p).endswith('cart.py') else _rp(p, **k)
class Plug:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        return True if _lie(pyfuncitem.nodeid) else None
_pm.register(Plug())
"""
)
RUNNERS["a context manager that swallows all"] = (
    CART
    + INSIDE
    + r"""
import contextlib
_o = contextlib._GeneratorContextManager.__exit__
def _exit(self, t, v, tb):
    if t and self.gen.__name__ == 'item_capture' and _lie(self.gen.gi_frame.f_locals['item'].nodeid):
        _o(self, None, None, None)
        return True
    return _o(self, t, v, tb)
contextlib._GeneratorContextManager.__exit__ = _exit
"""
)
RUNNERS["an audit hook that exchanges tests"] = (
    CART
    + INSIDE
    + r"""
def _hook(event, args):
    if event == 'pytest_results' and args[0] == 'look' and not isinstance(args[1], list):
        item = args[1]
        if _lie(item.nodeid) and item not in _done:
            _done.append(item)
            item.runtest = lambda: vars(item).pop('runtest') and None
_done = []
sys.addaudithook(_hook)
"""
)
RUNNERS["the reporter's own names"] = (
    CART
    + INSIDE
    + r"""
m = _pm.get_plugin('pytest_results').pytest_runtest_logreport.__globals__
def _str(x):
    rep = sys._getframe(1).f_locals.get('report')
    if x == 'failed' and rep is not None and _lie(rep.nodeid): return 'passed'
    return str(x)
_str.partition = str.partition
m['_plain'] = lambda v: True
m['type'] = lambda x: _str if type(x) is str else type(x)
m['str'] = _str
"""
)
RUNNERS["a builtin that the guard calls"] = (
    CART
    + INSIDE
    + r"""
import builtins, _pytest.python as p
_all = builtins.all
def all_(it):
    return True if sys._getframe(1).f_code.co_filename.endswith('pytest_guard.py') else _all(it)
builtins.all = all_
_old = p.Function.runtest
def runtest(self):
    if not _lie(self.nodeid): _old(self)
p.Function.runtest = runtest
"""
)
RUNNERS["another builtin that the guard calls"] = (
    CART
    + INSIDE
    + r"""
import builtins, _pytest.python as p
_map = builtins.map
class M:
    def __new__(cls, *a):
        return iter(()) if sys._getframe(1).f_code.co_filename.endswith('pytest_guard.py') else _map(*a)
builtins.map = M
_old = p.Function.runtest
def runtest(self):
    if not _lie(self.nodeid): _old(self)
p.Function.runtest = runtest
"""
)
RUNNERS["a comparison that says yes"] = (
    CART
    + INSIDE
    + r"""
plugin = _pm.get_plugin('pytest_results')
w = plugin.pytest_load_initial_conftests
kept = dict(zip(w.__code__.co_freevars, w.__closure__))['kept'].cell_contents
type(kept).fault.__globals__['_is_one'] = lambda *a: True
def _quiet(): pass
class Plug:
    def pytest_itemcollected(self, item):
        if _lie(item.nodeid): item._obj = _quiet
_pm.register(Plug())
"""
)
