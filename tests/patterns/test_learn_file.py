"""The file ``learn.toml`` and its variables."""

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.patterns.learn_file import LEARN_TABLE, LearnSettings, load_learn_settings


def test_without_a_file_every_setting_has_its_default(tmp_path):
    found = load_learn_settings(tmp_path, {"TFGRPO_LOOP_X": "1", "HOME": "/h"})
    assert found == LearnSettings() == LearnSettings(**{k: row.default for k, row in LEARN_TABLE.items()})


def test_a_variable_beats_the_file(tmp_path):
    (tmp_path / "learn.toml").write_text('alert_command = ["mail", "ann"]\nsuite = "evals"\n')
    assert load_learn_settings(tmp_path, {}) == LearnSettings(alert_command=("mail", "ann"), suite="evals")
    environ = {"TFGRPO_LEARN_ALERT_COMMAND": "notify 'the team'", "TFGRPO_LEARN_SUITE": ""}
    assert load_learn_settings(tmp_path, environ) == LearnSettings(alert_command=("notify", "the team"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("suite = 1", ":1: suite: 1 is not of type string; quote it"),
        (
            '# x\n\nalert_comand = ["x"]',
            ":3: alert_comand: unknown key 'alert_comand'; did you mean 'ale",
        ),
        ('suite = "a"\n[learn]\nsuite = "b"', ":2: learn: unknown key 'learn'"),
        (
            'alert_command = "mail ann"',
            "alert_command: 'mail ann' is not of type array; write [\"mail ann\"]",
        ),
        ("suite = 1\nmodel = 2", ":2: model: 2 is not of type string"),
        ("suite = ", "cannot read"),
        ("suite = " + "[" * 100_000, "cannot read"),
        ("suite = '\udcff'", "cannot read"),
    ],
)
def test_what_does_not_fit_is_named_with_file_line_key_and_value(tmp_path, text, said):
    (tmp_path / "learn.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SettingError, match=r"learn\.toml") as caught:
        load_learn_settings(tmp_path, {})
    assert said in str(caught.value)


def test_a_variable_that_no_setting_answers_to_is_named(tmp_path):
    with pytest.raises(SettingError, match="unknown environment variable TFGRPO_LEARN_SUIT; did you mean"):
        load_learn_settings(tmp_path, {"TFGRPO_LEARN_SUIT": "x"})


def test_a_variable_that_does_not_parse_is_named_with_key_and_value(tmp_path):
    with pytest.raises(SettingError, match="environment TFGRPO_LEARN_ALERT_COMMAND: alert_command must"):
        load_learn_settings(tmp_path, {"TFGRPO_LEARN_ALERT_COMMAND": "mail 'ann"})


def test_the_schema_has_the_keys_of_the_table():
    assert load_schema("learn-file")["properties"].keys() == LEARN_TABLE.keys()


def test_every_setting_may_come_from_a_variable_and_a_long_file_is_read(tmp_path):
    rows = [f"# {n:099}" for n in range(100)]
    (tmp_path / "learn.toml").write_text("\n".join([*rows, "approvers = ['ann', 'bo']", "skills = []"]))
    assert load_learn_settings(tmp_path, {}) == LearnSettings(approvers=("ann", "bo"), skills=())
    environ = {
        "TFGRPO_LEARN_MODEL": " openai:x ",
        "TFGRPO_LEARN_SUITE": " evals\n",
        "TFGRPO_LEARN_APPROVERS": "",
        "TFGRPO_LEARN_SKILLS": "a 'b c'",
        "TFGRPO_LEARN_AGENTS_MD": " AGENTS.md ",
    }
    assert load_learn_settings(tmp_path, environ) == LearnSettings(
        model="openai:x", suite="evals", approvers=(), skills=("a", "b c"), agents_md="AGENTS.md"
    )
