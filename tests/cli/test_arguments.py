"""What commands take as arguments, and what they say of others."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo import cli
from pytest_tfgrpo.cli import parser as command_line
from pytest_tfgrpo.cli.loop.training.arguments import _size
from pytest_tfgrpo.cli.parsers import Parser, person, positive, whole, words
from pytest_tfgrpo.cli.runs import baseline
from pytest_tfgrpo.cli.runs.arguments import _port, _share
from pytest_tfgrpo.core.errors import BaselineError
from pytest_tfgrpo.core.settings import resolve


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (whole, "0", 0),
        (whole, "9" * 18, int("9" * 18)),
        (whole, "9" * 19, None),
        (whole, "-1", None),
        (whole, "1.0", None),
        (whole, "", None),
        (positive, "1", 1),
        (positive, "0", None),
        (_share, "0", 0.0),
        (_share, "1", 1.0),
        (_share, "1.01", None),
        (_share, "-0.1", None),
        (_share, "nan", None),
        (_share, "half", None),
        (_size, "1", 1),
        (_size, "1000000000", 10**9),
        (_size, "1000000001", None),
        (_size, "0", None),
        (_port, "0", 0),
        (_port, "65535", 65535),
        (_port, "65536", None),
        (_port, "-1", None),
        (_port, "\N{ARABIC-INDIC DIGIT ONE}", None),
    ],
)
def test_a_number_has_its_limits(kind: Callable[[str], float], text: str, value: float | None) -> None:
    if value is not None:
        assert kind(text) == value
        return
    with pytest.raises(argparse.ArgumentTypeError, match=f"not {text!r}"):
        kind(text)


def test_a_number_of_eighteen_digits_is_refused_for_its_value_alone() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"^must be a whole number from 1 on, not '0{18}'$"):
        whole("0" * 18, 1)


def test_a_number_of_very_many_digits_is_refused_with_their_limit() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="a whole number of at most 18 digits from 2 on"):
        whole("1" * 19, 2)


def test_a_reader_that_leaves_ends_the_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def left(arguments: Any) -> Iterator[str]:
        raise BrokenPipeError
        yield

    kept: list[tuple[int, int]] = []
    system = SimpleNamespace(
        devnull="nothing", O_WRONLY=1, open=lambda *_: 5, dup2=lambda null, out: kept.append((null, out))
    )
    monkeypatch.setattr(cli, "command_of", lambda work: left)
    monkeypatch.setattr(cli, "sys", SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: 77)))
    monkeypatch.setattr(cli, "os", system)
    assert cli.main(["runs"]) == 1
    assert kept == [(5, 77)]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BaselineError("no\x1b[2J file"), 1, "tfgrpo: no"),
        (OSError(28, "No space left"), 1, "tfgrpo: [Errno 28] No space left"),
        (KeyboardInterrupt(), 130, ""),
        (
            ZeroDivisionError("oh"),
            3,
            "ZeroDivisionError: oh\ntfgrpo: this is a bug in pytest-tfgrpo; please report it\n",
        ),
    ],
)
def test_each_kind_of_end_has_its_exit_code(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(arguments: Any) -> Iterator[str]:
        yield "first"
        raise error

    monkeypatch.setattr(cli, "command_of", lambda work: broken)
    assert cli.main(["runs"]) == code
    found = capsys.readouterr()
    assert found.out == "first\n"
    assert said in found.err
    assert "\x1b" not in found.err
    assert bool(found.err) is bool(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shwo"], "did you mean 'show'"),
        (["show", "--ou", "x"], "--out"),
        (["quite-another"], "invalid choice: 'quite-another'"),
    ],
)
def test_the_nearest_command_or_option_is_named(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser(prog="tfgrpo", allow_abbrev=False)
    commands = parser.add_subparsers()
    show = commands.add_parser("show", allow_abbrev=False)
    show.add_task()

    def start() -> None:
        _, unknown = parser.parse_known_args(arguments)
        show.refuse(unknown)

    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("the following arguments are required: N, --to", "--to\n  N: how many\n  --to: where to\n"),
        ("the following arguments are required: --quiet", "--quiet\n"),
        (
            f"argument COMMAND: invalid choice: '{'x' * 90}' (choose from a)",
            f"no command '{'x' * 60}'; 't --help'",
        ),
        (
            "argument COMMAND: invalid choice: 'edit' (choose from exit)",
            "no command 'edit'; delete lessons from",
        ),
        ("argument --kind: invalid choice: 'tox' (choose from 'tax', 'b')", "'b'); did you mean 'tax'?\n"),
    ],
)
def test_errors_name_what_is_missing_by_its_help_and_what_does_the_work_of_other_words(
    message: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser(prog="t")
    parser.add_argument("n", metavar="N", help="how many")
    parser.add_argument("--to", required=True, help="where to")
    parser.add_argument("--quiet", required=True)
    with pytest.raises(SystemExit):
        parser.error(message)
    assert said in capsys.readouterr().err


def test_an_unknown_option_with_a_value_has_its_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="t")
    parser.add_argument("--verbose-output")
    with pytest.raises(SystemExit):
        parser.refuse(["x", "--verbose-outputs=a-very-long-value-of-it"])
    assert "; did you mean '--verbose-output'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (words, " it works \n", "it works"),
        (words, "x" * 10_000, "x" * 10_000),
        (words, "x" * 10_001, f"1 to 10,000 printable characters, not '{'x' * 40}'"),
        (words, " ", "1 to 10,000 printable characters, not ' '"),
        (words, "a\x1b[2J", r"1 to 10,000 printable characters, not 'a\x1b[2J'"),
        (person, "a" * 256, "a" * 256),
        (person, "a" * 257, f"1 to 256 printable characters, not '{'a' * 40}'"),
    ],
)
def test_words_of_people_are_printable_and_bounded(kind: Callable[[str], str], text: str, value: str) -> None:
    if " printable " not in value:
        assert kind(text) == value
        return
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        kind(text)
    assert str(refused.value) == f"must be {value}"


@pytest.mark.parametrize("group", ["", "loop", "library"])
def test_no_command_says_what_lists_them(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line().parse_args(group.split())
    name = f"tfgrpo {group}".strip()
    assert capsys.readouterr().err.endswith(f"required: COMMAND; '{name} --help' lists them\n")


def test_a_run_is_the_latest_unless_one_is_named() -> None:
    parser = Parser()
    parser.add_run("--run")
    parser.add_run("--against", default=None, help="another run")
    assert vars(parser.parse_args([])) == {"run": "latest", "against": None}


@pytest.mark.parametrize(
    ("margin", "gate", "strict", "outcome", "answer", "said"),
    [
        (None, False, False, "fail", "worse", ""),
        (0.0, True, False, "fail", "worse", "new is worse than old"),
        (0.2, False, True, "fail", "worse", "new is worse than old"),
        (None, True, False, "fail", "unseen", "a drop of 0.5 from old to new cannot be excluded"),
        (None, True, False, "inconclusive", "open", ""),
        (None, False, True, "inconclusive", "open", "it is inconclusive whether new is worse than old"),
        (None, True, True, "pass", "", ""),
    ],
)
def test_a_comparison_fails_where_it_is_to_be_a_gate(
    monkeypatch: pytest.MonkeyPatch,
    margin: float | None, gate: bool, strict: bool, outcome: str, answer: str, said: str,
) -> None:  # fmt: skip
    bars = []

    def compared(before: object, after: object, *, bar: Any, strict: bool) -> Any:
        assert (before, after) == ("the old", "the new")
        bars.append((bar.margin, bar.alarm))
        verdict = SimpleNamespace(outcome=outcome, figures={"answer": answer})
        return SimpleNamespace(lines=["a line"], verdict=verdict)

    settings = resolve({"gate_margin": "0.1", "gate_alarm": "0.5"}, {}, {})
    monkeypatch.setattr(baseline, "project_of", lambda arguments: SimpleNamespace(settings=settings))
    monkeypatch.setattr(baseline, "find", lambda project, wanted: f"the {wanted}")
    monkeypatch.setattr(baseline, "compare_baselines", compared)
    arguments = argparse.Namespace(a="old", b="new", margin=margin, gate=gate, strict=strict)
    lines = baseline.compare(arguments)
    assert next(lines) == "a line"
    with pytest.raises(BaselineError, match=f"^{said}$") if said else nullcontext():
        assert list(lines) == []
    assert bars == [(0.1 if margin is None else margin, 0.5)]


def _arguments(parser: Any, name: str) -> Iterator[str]:
    """Yield what each command takes, in a line for each argument."""
    parser.load()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, command in action.choices.items():
                yield from _arguments(command, f"{name} {word}")
        elif not isinstance(action, argparse._HelpAction):
            kind = type(action).__name__.strip("_").removesuffix("Action").lower()
            said = {
                "default": action.default if action.default != argparse.SUPPRESS else None,
                "const": action.const if kind == "storeconst" else None,
                "type": getattr(action.type, "__name__", action.type),
                "nargs": action.nargs if action.nargs != 0 else None,
                "choices": None if action.choices is None else "|".join(map(str, action.choices)),
                "required": (action.required and bool(action.option_strings)) or None,
                "dest": action.dest,
                "metavar": action.metavar,
            }
            shown = ", ".join(f"{key} {value}" for key, value in said.items() if value is not None)
            yield f"{name} {'/'.join(action.option_strings) or '.'}: {kind}, {shown}"
    for group in parser._mutually_exclusive_groups:
        which = " or ".join(action.dest for action in group._group_actions)
        yield f"{name}: {'one of' if group.required else 'at most one of'} {which}"


def test_each_command_takes_the_arguments_that_it_took(golden: Callable[[str, str], None]) -> None:
    golden("arguments.txt", "\n".join([*_arguments(command_line(), "tfgrpo"), ""]))
