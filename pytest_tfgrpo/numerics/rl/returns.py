"""Returns and generalised advantages, computed backwards in time over all trajectories at once.

Axis ``_T`` is time, ``_B`` trajectories side by side, ``_N`` the steps of trajectories packed end to end,
``_K`` trajectories. A step that *terminated* has no value after it; one that was *truncated* has, and the
advantage of the next step is not carried over either (Pardo et al. 2018, "Time Limits in Reinforcement
Learning"). Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized Advantage
Estimation"; Espeholt et al. 2018, "IMPALA".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_tfgrpo.numerics.arrays import Bools, Ints, Reals, finite, mask_of, np, reals, same_shape

if TYPE_CHECKING:
    import numpy.typing as npt

Ended = Literal["terminated", "truncated"]
BLOCK = 1 << 17
"""Steps that are computed at once: they stay in the cache until their advantages are."""
GAMMA, LAM = 0.99, 0.95
"""Decision 27."""


class PackedSteps(NamedTuple):
    """Trajectories end to end."""

    steps_N: Reals
    lengths_K: Ints


class VTrace(NamedTuple):
    """What V-trace gives, each [T] or [T, B]."""

    errors: Reals
    pg_advantage: Reals
    q_estimate: Reals


def lambda_returns(
    r_t: npt.ArrayLike, discount_t: npt.ArrayLike, v_t: npt.ArrayLike, lam: npt.ArrayLike = 1.0
) -> Reals:
    """Return ``G_t = r_t + discount_t ((1 - lam_t) v_t + lam_t G_t+1)``, ``G_T`` being the last `v_t`.

    `r_t` is [T] or [T, B]; `discount_t`, `v_t` and `lam` have its shape, or one that broadcasts to it: a
    single `v_t` is the value after the end. Sutton and Barto 2018, equation 12.2; raises ValueError as `gae`
    does.
    """
    r, discount, v, lam_t = reals(r_t=r_t, discount_t=discount_t, v_t=v_t, lam=lam)
    finite(r_t=r, discount_t=discount, v_t=v, lam=lam_t)
    discount, v, lam_t = (np.broadcast_to(x, r.shape) for x in (discount, v, lam_t))
    out = np.empty_like(r)
    if len(r):
        carry = v[-1].copy()
        for t in reversed(range(len(r))):
            carry = r[t] + discount[t] * ((1 - lam_t[t]) * v[t] + lam_t[t] * carry)
            out[t] = carry
    return out


def discounted_returns(r_t: npt.ArrayLike, discount_t: npt.ArrayLike, v_t: npt.ArrayLike = 0.0) -> Reals:
    """Return ``G_t = r_t + discount_t G_t+1``, the last being `v_t`, the value after the end; as above."""
    return lambda_returns(r_t, discount_t, v_t, 1.0)


def gae(
    rewards: npt.ArrayLike,
    values: npt.ArrayLike,
    next_values: npt.ArrayLike,
    terminated: npt.ArrayLike,
    truncated: npt.ArrayLike,
    *,
    gamma: float = GAMMA,
    lam: float = LAM,
) -> tuple[Reals, Reals]:
    """Return advantages and returns (advantage + value), each [T] or [T, B] as all that is given.

    ``delta = r + gamma V' - V``, ``A_t = delta_t + gamma lam A_t+1``. `next_values` is what the critic gives
    for the state after each step; where a step terminated it counts for nothing, whatever it holds. Raises
    ValueError for shapes that differ, and with its place for a number that is not finite.
    """
    r, v, after = reals(rewards=rewards, values=values, next_values=next_values)
    over = mask_of(terminated, r.shape)
    cut = mask_of(truncated, r.shape)
    ends = over | cut if cut.any() else over
    same_shape(r.shape, values=v, next_values=after)
    _check_factors(gamma, lam)
    wide = (-1, 1) if r.ndim == 1 else r.shape
    out = np.empty_like(r), np.empty_like(r)
    with np.errstate(over="ignore", invalid="ignore"):
        _scan(
            r.reshape(wide),
            v.reshape(wide),
            after.reshape(wide),
            over.reshape(wide),
            ends.reshape(wide),
            gamma,
            lam,
            (out[0].reshape(wide), out[1].reshape(wide)),
            np.zeros(r.shape[1:] or (1,), r.dtype),
        )
    return _checked(out, r, v, over, next_values=after)


def _scan(
    r: Reals,
    v: Reals,
    after: Reals,
    over: Bools,
    ends: Bools,
    gamma: float,
    lam: float,
    out: tuple[Reals, Reals],
    following: Reals,
) -> None:
    """Go backwards in blocks of rows that stay in the cache; `following` is the advantage after the last."""
    advantages, returns = out
    by_gamma, by_both = r.dtype.type(gamma), r.dtype.type(gamma * lam)
    step = max(BLOCK // max(r.shape[1], 1), 1)
    room = np.empty((2, min(step, len(r)), r.shape[1]), r.dtype)
    for stop in range(len(r), 0, -step):
        block = slice(max(stop - step, 0), stop)
        delta, decay = room[:, : stop - block.start]
        np.multiply(after[block], by_gamma, out=delta)
        np.copyto(delta, 0, where=over[block])  # putmask takes four times as long
        delta += r[block]
        delta -= v[block]
        decay.fill(by_both)
        np.copyto(decay, 0, where=ends[block])
        for error, carried, row in zip(delta[::-1], decay[::-1], advantages[block][::-1], strict=True):
            carried *= following
            following = np.add(carried, error, out=row)
        np.add(advantages[block], v[block], out=returns[block])


def gae_buffer(
    rewards: npt.ArrayLike,
    values: npt.ArrayLike,
    episode_starts: npt.ArrayLike,
    last_values: npt.ArrayLike,
    last_dones: npt.ArrayLike,
    *,
    gamma: float = GAMMA,
    lam: float = LAM,
) -> tuple[Reals, Reals]:
    """Return what `gae` does, from a rollout buffer as Stable-Baselines3 fills it.

    `rewards`, `values` and `episode_starts` are [T, B]: 1 at the first step of an episode. `last_values` and
    `last_dones` are [B], of the state after the buffer. Each end counts as a termination; the value after a
    truncation is in the reward there already.
    """
    r, v, last = reals(rewards=rewards, values=values, last_values=last_values)
    starts = mask_of(episode_starts, r.shape)
    done = mask_of(last_dones, r.shape[1:])
    same_shape(r.shape, values=v)
    same_shape(r.shape[1:], last_values=last)
    _check_factors(gamma, lam)
    out = np.empty_like(r), np.empty_like(r)
    edge, rest = slice(-1, None), slice(None, -1)
    later = np.zeros(r.shape[1:], r.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if len(r):
            both = done[None]
            _scan(r[edge], v[edge], last[None], both, both, gamma, lam, (out[0][edge], out[1][edge]), later)
            later = out[0][-1]
        _scan(
            r[rest], v[rest], v[1:], starts[1:], starts[1:], gamma, lam, (out[0][rest], out[1][rest]), later
        )
    return _checked(out, r, v, done, last_values=last)


def _checked(
    out: tuple[Reals, Reals], rewards: Reals, values: Reals, over: Bools, suffix: str = "", **following: Reals
) -> tuple[Reals, Reals]:
    """Return advantages and returns; looks for the number that is not finite only if their sum is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = out[1].sum()
    if not np.isfinite(total):
        finite(None, **{f"rewards{suffix}": rewards, f"values{suffix}": values})
        finite(~over, **following)
        finite(advantages=out[0], returns=out[1])
    return out


def pack(trajectories: Sequence[npt.ArrayLike]) -> PackedSteps:
    """Return trajectories end to end, with their lengths; raises ValueError for one that is no vector."""
    steps = reals(**{f"trajectories[{k}]": one for k, one in enumerate(trajectories)}) if trajectories else []
    for k, one in enumerate(steps):
        if one.ndim != 1:
            raise ValueError(f"trajectories[{k}] must be a vector, got the shape {one.shape}")
    packed = np.concatenate(steps) if steps else np.zeros(0)
    return PackedSteps(packed, np.array([len(one) for one in steps], dtype=np.intp))


def gae_packed(
    rewards_N: npt.ArrayLike,
    values_N: npt.ArrayLike,
    lengths_K: npt.ArrayLike,
    terminated_K: npt.ArrayLike,
    bootstrap_K: npt.ArrayLike,
    *,
    gamma: float = GAMMA,
    lam: float = LAM,
) -> tuple[Reals, Reals]:
    """Return advantages and returns, [N], of trajectories that are packed end to end.

    `bootstrap_K` is the value after the last step of a trajectory that was truncated; where it terminated it
    counts for nothing. Raises ValueError as `gae` does, and where the lengths do not add up to N.
    """
    r, v, last = reals(rewards_N=rewards_N, values_N=values_N, bootstrap_K=bootstrap_K)
    lengths = np.asarray(lengths_K)
    if lengths.ndim != 1 or (lengths.size and (lengths.dtype.kind not in "iu" or lengths.min() < 0)):
        raise ValueError("lengths_K must be a vector of counts")
    over = mask_of(terminated_K, lengths.shape)
    same_shape((int(lengths.sum()),), rewards_N=r, values_N=v)
    same_shape(lengths.shape, bootstrap_K=last)
    _check_factors(gamma, lam)
    after, returns = np.empty((2, v.size), v.dtype)  # at once: new memory costs more than the arithmetic
    after[:-1] = v[1:]
    ends = np.cumsum(lengths)
    used = lengths > 0
    after[ends[used] - 1] = np.where(over, 0, last)[used]
    with np.errstate(over="ignore", invalid="ignore"):
        after *= r.dtype.type(gamma)
        after += r
        after -= v
        _scan_packed(after, lengths, ends, gamma * lam)  # from errors to advantages
        np.add(after, v, out=returns)
    return _checked((after, returns), r, v, over, suffix="_N", bootstrap_K=last)


def _scan_packed(delta_N: Reals, lengths_K: Ints, ends_K: Ints, decay: float) -> None:
    """Go backwards from the ends of all trajectories at once, the longest first: the rest falls away
    behind."""
    longest = int(lengths_K.max(initial=0))
    short = longest < 1 << 15  # then they are sorted by their digits, in a tenth of the time
    falling_K: Ints = np.negative(lengths_K.astype(np.int64))
    order = np.argsort(falling_K.astype(np.int16) if short else falling_K, kind="stable")
    place_K = ends_K[order] - 1
    active_T = np.searchsorted(falling_K[order], -np.arange(longest), side="left")
    factor = delta_N.dtype.type(decay)
    carry_K = delta_N[place_K[: active_T[0]]] if active_T.size else delta_N[:0]
    step_K = np.empty_like(carry_K)
    for active in active_T[1:].tolist():
        place, carry, step = place_K[:active], carry_K[:active], step_K[:active]
        place -= 1
        delta_N.take(place, out=step, mode="clip")
        carry *= factor
        carry += step
        delta_N[place] = carry


def gae_ragged(
    rewards: Sequence[npt.ArrayLike],
    values: Sequence[npt.ArrayLike],
    ended: Sequence[Ended],
    bootstrap: Sequence[float],
    *,
    gamma: float = GAMMA,
    lam: float = LAM,
) -> tuple[list[Reals], list[Reals]]:
    """Return advantages and returns of trajectories of any lengths, each in a list of its own.

    Each trajectory `ended` "terminated", or "truncated" with the value that follows in `bootstrap`. Raises
    ValueError as `gae_packed` does, and for another end.
    """
    for k, end in enumerate(ended):
        if end not in ("terminated", "truncated"):
            raise ValueError(f"ended[{k}] is {end!r}; it must be 'terminated' or 'truncated'")
    packed, packed_values = pack(rewards), pack(values)
    if packed.lengths_K.tolist() != packed_values.lengths_K.tolist():
        raise ValueError("rewards and values must have equal lengths")
    over = np.array([end == "terminated" for end in ended], dtype=np.bool_)
    last = np.asarray(bootstrap, dtype=packed.steps_N.dtype)
    found = gae_packed(
        packed.steps_N, packed_values.steps_N, packed.lengths_K, over, last, gamma=gamma, lam=lam
    )
    cuts = np.cumsum(packed.lengths_K)[:-1]
    advantages, returns = (np.split(one, cuts) if len(over) else [] for one in found)
    return advantages, returns


def gae_tokens(
    rewards_BT: npt.ArrayLike,
    values_BT: npt.ArrayLike,
    mask_BT: npt.ArrayLike,
    *,
    gamma: float = 1.0,
    lam: float = LAM,
) -> tuple[Reals, Reals]:
    """Return advantages and returns of the tokens of answers, [B, T]; 0 where they are masked.

    Tokens that the agent did not write (tool results, padding) are passed over: the next value of a token is
    that of the next token that counts. There is no value after the last. As verl's, without its whitening.
    """
    r, v = reals(rewards_BT=rewards_BT, values_BT=values_BT)
    counted = mask_of(mask_BT, r.shape)
    same_shape(r.shape, values_BT=v)
    _check_factors(gamma, lam)
    finite(counted, rewards_BT=r, values_BT=v)
    advantages, returns = np.zeros_like(r), np.zeros_like(r)
    carry, after = np.zeros(len(r), r.dtype), np.zeros(len(r), r.dtype)
    for t in reversed(range(r.shape[1])):
        here = counted[:, t]
        at = np.where(here, v[:, t], 0)
        delta = np.where(here, r[:, t], 0) + r.dtype.type(gamma) * after - at
        carry = np.where(here, delta + r.dtype.type(gamma * lam) * carry, carry)
        after = np.where(here, at, after)
        advantages[:, t] = np.where(here, carry, 0)
        returns[:, t] = np.where(here, carry + at, 0)
    return advantages, returns


def vtrace(
    v_tm1: npt.ArrayLike,
    v_t: npt.ArrayLike,
    r_t: npt.ArrayLike,
    discount_t: npt.ArrayLike,
    log_rho_tm1: npt.ArrayLike,
    *,
    lam: npt.ArrayLike = 1.0,
    clip_rho: float = 1.0,
    clip_pg_rho: float = 1.0,
) -> VTrace:
    """Return errors, policy-gradient advantages and action values off policy, each [T] or [T, B] as `r_t`.

    `log_rho_tm1` are log-ratios of the target's to the behaviour's probability of the action taken; ratios
    are clipped before they are raised, so that none overflows. Espeholt et al. 2018, equation 1; raises
    ValueError as `lambda_returns` does.
    """
    v, after, r, discount, log_rho, lam_t = reals(
        v_tm1=v_tm1, v_t=v_t, r_t=r_t, discount_t=discount_t, log_rho_tm1=log_rho_tm1, lam=lam
    )
    finite(v_tm1=v, v_t=after, r_t=r, discount_t=discount, log_rho_tm1=log_rho, lam=lam_t)
    same_shape(r.shape, v_tm1=v, v_t=after, log_rho_tm1=log_rho)
    discount, lam_t = np.broadcast_to(discount, r.shape), np.broadcast_to(lam_t, r.shape)
    log_clip, log_pg_clip = (r.dtype.type(np.log(clip)) for clip in (clip_rho, clip_pg_rho))
    rho = np.exp(np.minimum(log_rho, log_clip))
    trace = np.exp(np.minimum(log_rho, 0)) * lam_t
    td = rho * (r + discount * after - v)
    errors = np.empty_like(r)
    carry = np.zeros(r.shape[1:], r.dtype)
    for t in reversed(range(len(r))):
        carry = td[t] + discount[t] * trace[t] * carry
        errors[t] = carry
    targets = errors + v
    bootstrap = np.concatenate([lam_t[:-1] * targets[1:] + (1 - lam_t[:-1]) * v[1:], after[-1:]])
    q_estimate = r + discount * bootstrap
    pg_rho = np.exp(np.minimum(log_rho, log_pg_clip))
    return VTrace(errors, pg_rho * (q_estimate - v), q_estimate)


def _check_factors(gamma: float, lam: float) -> None:
    for name, value in (("gamma", gamma), ("lam", lam)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value!r}; it must be from 0 to 1")
