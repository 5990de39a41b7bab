"""What other libraries give for the same, to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
from statsmodels.stats.multitest import multipletests


def statsmodels_holm(p: Sequence[float]) -> np.ndarray:
    """Return the adjusted p values of statsmodels, without the garbage collection that it makes each time."""
    with mock.patch("gc.collect"):
        return np.asarray(multipletests(p, method="holm")[1])
