"""The check that runs a program: what it is given, without running one."""

import os

from pytest_tfgrpo.scoring.checks.command import scrubbed


def test_programs_are_looked_for_in_no_folder_of_the_workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.pathsep.join([".", "bin", "/usr/bin", "../tools", "/usr/bin"]))
    folders = scrubbed(tmp_path)["PATH"].split(os.pathsep)
    assert folders[1:] == ["/usr/bin"]
    assert all(map(os.path.isabs, folders))


def test_a_program_gets_no_variable_of_the_test_run(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert scrubbed(tmp_path).keys() == {"PATH", "HOME", "LANG"}
