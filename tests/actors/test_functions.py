"""Functions given as agents: what they are called, and what makes one the same agent as another."""

import functools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from pytest_tfgrpo.actors import agent_signature
from pytest_tfgrpo.actors.function_identity import fingerprint
from pytest_tfgrpo.actors.functions import function_name, open_function
from pytest_tfgrpo.core.errors import ActorError

HEAD = """
import functools, threading
MODEL, PROMPTS, CLIENT = "small", {"system": "Be brief."}, threading.Lock()
CALLS = 0
"""


def made(source: str, name: str = "solve", module: str = "__main__") -> Any:
    """Return what a program of one cell calls `name`."""
    scope: dict[str, Any] = {"__name__": module}
    exec(compile(HEAD + source, "<cell>", "exec"), scope)
    return scope[name]


def same(one: str, other: str, name: str = "solve") -> bool:
    return fingerprint(made(one, name)) == fingerprint(made(other, name))


PLAIN = "def solve(context):\n    return context.prompt.user\n"
HELPED = "def helper(text):\n    return text + '!'\ndef solve(context):\n    return helper(MODEL)\n"
AGENT = """
class Agent:
    kind = "a"
    def __init__(self, model):
        self.model, self.calls, self.client = model, 0, threading.Lock()
    def __call__(self, context):
        self.calls += 1
        return self.model + self.kind
    def solve(self, context):
        return self.model
"""

SLOTS = """
class Agent:
    __slots__ = ("model", "unset")
    def __init__(self, model):
        self.model = model
    def __call__(self, context):
        return self.model
"""
TABLE = "class Agent(dict):\n    def __call__(self, context):\n        return self['a']\n"


@pytest.mark.parametrize(
    "source",
    [
        PLAIN,
        HELPED,
        "solve = lambda context: MODEL",
        "def solve(context):\n    return CLIENT, PROMPTS\n",
        AGENT + "solve = Agent('small')",
        AGENT + "solve = Agent('small').solve",
        "def f(model, context):\n    return model\nsolve = functools.partial(f, 'small')",
        "solve = functools.lru_cache(lambda context: '1')",
        "def solve(context):\n    return solve and {1, 2, 'x'} and context.x in {'a', 'b', 'c'}\n",
    ],
)
def test_the_same_program_makes_the_same_agent_at_another_place(source: str) -> None:
    assert same(source, "\n\n" + source)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("solve = lambda context: '1'", "solve = lambda context: '2'"),
        ("solve = lambda context: context.a", "solve = lambda context: context.b"),
        (HELPED, HELPED.replace("!", "?")),
        (HELPED, HELPED + "MODEL = 'large'"),
        (PLAIN, PLAIN.replace("(context)", "(context, times=1)")),
        ("def solve(c, n=1): return n", "def solve(c, n=2): return n"),
        ("def solve(c): return PROMPTS", "def solve(c): return PROMPTS\nPROMPTS['system'] = 'Be long.'"),
        (AGENT + "solve = Agent('small')", AGENT + "solve = Agent('large')"),
        (AGENT + "solve = Agent('small')", AGENT.replace('"a"', '"b"') + "solve = Agent('small')"),
        (AGENT + "solve = Agent('a').solve", AGENT + "solve = Agent('b').solve"),
        ("make = lambda n: lambda c: n\nsolve = make(1)", "make = lambda n: lambda c: n\nsolve = make(2)"),
        (
            "def f(model, c): return model\nsolve = functools.partial(f, 'a')",
            "def f(model, c): return model\nsolve = functools.partial(f, 'b')",
        ),
        ("solve = functools.lru_cache(lambda c: '1')", "solve = functools.lru_cache(lambda c: '2')"),
        (SLOTS + "solve = Agent('a')", SLOTS + "solve = Agent('b')"),
        (TABLE + "solve = Agent(a='1')", TABLE + "solve = Agent(a='2')"),
        (TABLE + "solve = Agent(a='1')", TABLE.replace("self['a']", "'9'") + "solve = Agent(a='1')"),
        ("async def solve(c): return '1'", "def solve(c): return '1'"),
    ],
)
def test_other_code_or_values_make_another_agent(one: str, other: str) -> None:
    assert not same(one, other)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        (
            "LOG, CACHE = [], {}\n"
            "def solve(c):\n    LOG.append(c)\n    CACHE[c] = LOG\n    return str(CACHE)",
            lambda solve: solve(None),
        ),
        (
            "class Agent:\n    def __init__(self):\n        self.seen, self.kept = [], {}\n"
            "    def __call__(self, c):\n        self.seen.append(1)\n        self.kept['a'] = 1\n"
            "        return ''\nsolve = Agent()",
            lambda solve: solve(None),
        ),
        ("def solve(c):\n    global CALLS\n    CALLS += 1\n    return str(CALLS)", lambda solve: solve(None)),
        (AGENT + "solve = Agent('small')", lambda solve: solve(None)),
        ("def solve(c, *, seen={}):\n    seen[c] = 1\n    return ''", lambda solve: solve(None)),
        ("def solve(c, n=1, seen=[]):\n    seen.append(c)\n    return ''", lambda solve: solve(None)),
        (
            "class Agent:\n    calls = 0\n    def __call__(self, c):\n        type(self).calls += 1\n"
            "        return ''\nsolve = Agent()",
            lambda solve: solve(None),
        ),
        (
            "def make():\n    n = 0\n    def solve(c):\n        nonlocal n\n        n += 1\n"
            "        return str(n)\n    return solve\nsolve = make()",
            lambda solve: solve(None),
        ),
    ],
)
def test_what_an_agent_counts_for_itself_makes_no_other_agent(
    source: str, call: Callable[[Any], object]
) -> None:
    solve = made(source)
    before = fingerprint(solve)
    call(solve)
    assert fingerprint(solve) == before


def test_functions_of_other_modules_count_by_name_and_endless_values_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert fingerprint(functools.partial(print, loop)) == fingerprint(functools.partial(print, loop))
    large = functools.partial(print, list(range(20_000)))
    assert fingerprint(large) != fingerprint(functools.partial(print))
    assert fingerprint(functools.partial(print, threading.Lock())) == fingerprint(
        functools.partial(print, threading.Lock())
    )


@pytest.mark.parametrize("kind", [Mock, MagicMock, AsyncMock])
@pytest.mark.parametrize("spec", [None, str, dict, tuple, made, made.__code__], ids=range(6))
def test_a_mock_may_call_itself_something_else(kind: type[Mock], spec: object) -> None:
    assert fingerprint(kind(spec)) == fingerprint(kind(spec))


def test_an_agent_may_say_itself_what_makes_it_another() -> None:
    one, other = made(PLAIN), made("solve = lambda context: 'other'")
    one.identity = other.identity = {"version": 1}
    assert (
        open_function(one, "a").identity
        == open_function(other, "a").identity
        == {
            "spec": "function:a",
            "identity": {"version": 1},
        }
    )
    other.identity = {"version": 2}
    assert open_function(one, "a").identity != open_function(other, "a").identity


@pytest.mark.parametrize("identity", ["v1", {"key": object()}, {"x": float("nan")}, 3])
def test_an_identity_that_cannot_be_kept_is_refused(identity: object) -> None:
    solve = made(PLAIN)
    solve.identity = identity
    with pytest.raises(ActorError, match=r"identity must be a mapping that JSON can hold, .*'version': 1"):
        open_function(solve, "solve")


def test_an_identity_that_cannot_be_read_is_refused() -> None:
    class Broken(Agent):
        @property
        def identity(self) -> object:
            raise RuntimeError("not now")

    with pytest.raises(ActorError, match="identity cannot be read: RuntimeError: not now"):
        open_function(Broken(), "x")


def test_what_is_nested_too_deeply_to_be_seen_needs_an_identity() -> None:
    nested: list[Any] = []
    for _ in range(5_000):
        nested = [nested]
    with pytest.raises(ActorError, match=r"nested too deeply .* attribute identity"):
        open_function(functools.partial(lambda deep, context: "1", nested), "deep")


class Agent:
    def __call__(self, context: object) -> str:
        return "1"

    def solve(self, context: object) -> str:
        return "1"


def löse(context: object) -> str:
    return "1"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (same, "same"),
        (Agent(), "Agent"),
        (Agent().solve, "Agent.solve"),
        (functools.partial(same, "x"), "same"),
        ((lambda: lambda context: "")(), "lambda"),
        (löse, "l-se"),
        (made("def 解(c): return ''", "解"), "function"),
        (made("def " + "x" * 60 + "(c): return ''", "x" * 60), "x" * 40),
    ],
)
def test_an_agent_is_called_as_in_its_program(value: object, name: str) -> None:
    assert function_name(value) == name


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (lambda: "1", r"'lambda' must take one argument, the context, not \(\)"),
        (SimpleNamespace(run=lambda context: "1"), "has run.*write actor=simplenamespace.run"),
        (3, "'int' is 3, not a callable"),
        (Agent, "'Agent' is a class; name an instance"),
        (Agent.solve, "it is a method of the class 'Agent'"),
        (made("def solve(prompt: str): return prompt"), "it gets a context: use context.prompt.user"),
        (made("def solve(context): yield 1"), "a generator"),
    ],
)
def test_what_cannot_be_an_agent_is_refused_with_what_to_do(value: object, said: str) -> None:
    with pytest.raises(ActorError, match=said):
        open_function(value, "x")


class Meta(type):
    def __call__(cls, *arguments: object) -> object:
        return "made"


class Made(metaclass=Meta):
    pass


class New:
    def __new__(cls) -> "New":
        return object.__new__(cls)


@pytest.mark.parametrize(
    ("made", "answers"),
    [(Made, True), (New, True), (type("T", (str,), {}), True), (type("Plain", (), {}), False)],
)
def test_a_class_makes_answers_where_calling_it_may_make_something_else(made: type, answers: bool) -> None:
    assert agent_signature._makes_answers(made) is answers
