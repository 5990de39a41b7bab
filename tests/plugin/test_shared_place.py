"""What all rollouts of a process share is not changed unseen by fixtures that set up one of them."""

import os
import threading
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.plugin.shared_place import unchanged


def test_a_change_is_refused_at_its_line_and_has_not_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGRPO_OLD", "1")
    here = Path.cwd()
    with unchanged("booking"):
        with pytest.raises(
            ProviderError, match="fixtures of booking change TFGRPO_NEW, which agents"
        ) as refused:
            os.environ["TFGRPO_NEW"] = "1"
        with pytest.raises(ProviderError, match="fixtures of booking change TFGRPO_OLD"):
            del os.environ["TFGRPO_OLD"]
        with pytest.raises(ProviderError, match="fixtures of booking change the working folder"):
            os.chdir(tmp_path)
        os.environ["PYTEST_CURRENT_TEST"] = os.environ["PYTEST_CURRENT_TEST"]  # pytest's own
    assert refused.value.code == "fixture"
    assert (Path.cwd(), "TFGRPO_NEW" in os.environ, os.environ["TFGRPO_OLD"]) == (here, False, "1")


def test_other_threads_and_what_comes_after_may_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with unchanged("booking"):
        other = threading.Thread(target=monkeypatch.setenv, args=("TFGRPO_NEW", "1"))
        other.start()
        other.join()
    assert os.environ["TFGRPO_NEW"] == "1"
    with pytest.raises(ZeroDivisionError), unchanged("booking"):
        raise ZeroDivisionError
    monkeypatch.setenv("TFGRPO_NEW", "2")
    assert os.environ["TFGRPO_NEW"] == "2"
