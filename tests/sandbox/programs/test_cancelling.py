"""Work that another thread cancels."""

import pytest

from pytest_tfgrpo.sandbox.programs.cancelling import Cancelled, cancelled_by, require_going


def test_work_goes_on_until_it_is_cancelled_and_what_surrounds_it_is_not() -> None:
    over: list[bool] = []
    require_going()
    with cancelled_by(lambda: False):
        with cancelled_by(lambda: bool(over)):
            require_going()
            over.append(True)
            with pytest.raises(Cancelled):
                require_going()
        require_going()
    require_going()
