"""Whitening: values to mean 0 and deviation 1 over all that is not masked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pytest_tfgrpo.numerics.arrays import Reals, finite, mask_of, np, reals

if TYPE_CHECKING:
    import numpy.typing as npt


def whiten(
    x: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    ddof: int = 1,
    eps: float = 1e-8,
    eps_in: Literal["root", "std"] = "root",
    shift_mean: bool = True,
    single: Literal["error", "keep"] = "error",
    mask_eps: float = 0.0,
) -> Reals:
    """Return ``(x - mean) / sqrt(var + eps)``, of any shape; 0 where `mask` is 0, and where all are equal.

    Defaults are those of verl and TRL but for `mask_eps` (1e-8 there), which is added to the count of values
    under the mean and the variance: a mean over all values is not a little less than itself.
    Stable-Baselines3 divides by ``std + eps`` (`eps_in` "std") and leaves one value as it is (`single`
    "keep"). `ddof` is 1 for the sample's variance; decision 27 has 0. Without `shift_mean` the mean is added
    again. Moments are summed in float64. Raises ValueError for a value that is not finite, and for fewer than
    two under `single` "error".
    """
    (values,) = reals(x=x)
    counted = mask_of(mask, values.shape)
    finite(counted, x=values)
    out = np.zeros_like(values)
    kept = values[counted].astype(np.float64)
    if kept.size < 2:
        if single == "error":
            raise ValueError(f"x has {kept.size} values that are not masked; whitening needs 2")
        out[counted] = kept
        return out
    mean = kept.sum() / (kept.size + mask_eps)
    if kept.max() == kept.min():
        out[counted] = 0.0 if shift_mean else kept
        return out
    centred = kept - mean
    variance = (centred**2).sum() / (kept.size + mask_eps) * kept.size / (kept.size - ddof)
    scale = np.sqrt(variance + eps) if eps_in == "root" else np.sqrt(variance) + eps
    out[counted] = centred / scale + (0.0 if shift_mean else mean)
    return out
