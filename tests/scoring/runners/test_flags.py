"""Flags of node: which a run of tests has of a script, and which load modules behind the reporter."""

import pytest

from pytest_tfgrpo.scoring.runners.javascript.flags import kept_flags, node_flags


def test_what_flags_load_is_loaded_behind_the_reporter_and_the_others_are_nodes():
    words = (
        "--import=tsx/esm",
        "--no-warnings",
        "--require=./a.cjs",
        "--require=b",
        "--experimental-loader=ts-node/esm",
    )
    flags = node_flags((*words, "--conditions=dev", "--experimental-vm-modules", "--max-old-space-size=4096"))
    assert flags.own == (
        "--no-warnings",
        "--conditions=dev",
        "--experimental-vm-modules",
        "--max-old-space-size=4096",
    )
    loads = (("import", "tsx/esm"), ("require", "./a.cjs"), ("require", "b"), ("loader", "ts-node/esm"))
    assert flags.loads == loads


@pytest.mark.parametrize(
    "word",
    [
        *(
            "--eval=1",
            "-e",
            "--inspect",
            "--test",
            "--test-reporter=x",
            "--import=",
            "-r=b",
            "x.js",
            "--env-file=.env",
        ),
        *(
            "--experimental-config-file=x",
            "--experimental-test-coverage",
            "--experimental-permission",
            "--prof",
        ),
        *(
            "--require=a\0b",
            "--expose-internals",
            "--allow-natives-syntax",
            "--experimental-strip-types --eval=1",
        ),
    ],
)
def test_a_flag_that_would_run_report_or_write_something_else_is_refused_and_not_kept(word):
    with pytest.raises(ValueError, match="is no flag of node with which tests can run"):
        node_flags((word,))
    assert list(kept_flags([word])) == []


def test_a_value_in_the_next_word_is_kept_with_its_flag():
    words = [
        "--test",
        "--import",
        "tsx",
        "-r",
        "./a.cjs",
        "--test-timeout",
        "9",
        "test/*.ts",
        "-C",
        "dev",
        "--loader",
    ]
    assert list(kept_flags(words)) == ["--import=tsx", "--require=./a.cjs", "--conditions=dev"]
