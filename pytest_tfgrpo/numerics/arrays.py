"""The types of arrays, how arrays of callers are checked, and numpy, loaded when something computes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:

    class _Numpy:
        """Numpy, loaded with the first name that somebody reads: few starts compute anything."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)  # the next time it is found at once
            return found

    np = _Numpy()

__all__ = ["Bools", "Floats", "Ints", "Reals", "finite", "mask_of", "np", "reals", "same_shape", "usable"]

Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.intp]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Reals: TypeAlias = "npt.NDArray[np.floating]"
"""float32 or float64: what a function of the RL mathematics is given, it gives back."""


def reals(**values: npt.ArrayLike) -> list[Reals]:
    """Return arrays of one precision: float32 where all of them are, else float64.

    Raises ValueError with the name of an array that holds no real numbers.
    """
    arrays = {name: np.asarray(value) for name, value in values.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers, got {array.dtype}")
    single = all(array.dtype in (np.float32, np.float16) for array in arrays.values() if array.ndim)
    kept = np.float32 if single and any(array.ndim for array in arrays.values()) else np.float64
    return [array.astype(kept, copy=False) for array in arrays.values()]


def same_shape(shape: tuple[int, ...], **arrays: npt.NDArray[np.generic]) -> None:
    """Raise ValueError with the name of an array of another shape."""
    for name, array in arrays.items():
        if array.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {array.shape}")


def mask_of(mask: npt.ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    """Return a mask as booleans, all True for None; raises ValueError for a value that is neither 0 nor 1."""
    if mask is None:
        return np.ones(shape, dtype=np.bool_)
    found = np.asarray(mask)
    same_shape(shape, mask=found)
    chosen = found.astype(np.bool_, copy=False)
    if found.dtype.kind != "b" and not np.array_equal(found, chosen):
        raise ValueError("mask must hold nothing but 0 and 1")
    return chosen


def finite(mask: Bools | None = None, **arrays: npt.NDArray[np.floating]) -> None:
    """Raise ValueError with the name, index and value of a number that is NaN or infinite where it counts.

    `mask` is True where a value counts; it has the arrays' shape.
    """
    for name, array in arrays.items():
        bad = ~np.isfinite(array)
        if mask is not None:
            bad &= mask
        if bad.any():
            place = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
            index = ", ".join(map(str, place))
            raise ValueError(f"{name}[{index}] is {float(array[place])}; mask it, or fix what computed it")


def usable(least: float | None = None, **numbers: float | None) -> None:
    """Raise ValueError with the name of a number that is NaN, infinite or under `least`; None is left out."""
    for name, number in numbers.items():
        if number is not None and not (math.isfinite(number) and (least is None or number >= least)):
            bound = "" if least is None else f", at least {least:g}"
            raise ValueError(f"{name} is {number!r}; it must be a finite number{bound}")
