import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.rl.aggregation import row_weights
from pytest_tfgrpo.numerics.rl.divergence import KlKind, adaptive_kl, kl, kl_gradient
from pytest_tfgrpo.numerics.rl.losses import (
    Level,
    Loss,
    entropy,
    entropy_bonus,
    explained_variance,
    log_probs,
    policy_loss,
    ppo_objective,
    value_loss,
)
from pytest_tfgrpo.numerics.rl.preferences import PreferenceKind, dpo_loss
from pytest_tfgrpo.numerics.rl.surrogates import KINDS, PolicyKind

SHAPE = (3, 5)
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(KINDS)


def played(seed: int, spread: float = 0.5) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    old = np.log(rng.uniform(0.05, 1, SHAPE))
    mask = rng.random(SHAPE) < 0.7
    mask[0, 0] = True
    return [old + rng.normal(0, spread, SHAPE), old, rng.normal(size=SHAPE), mask]


def central(function: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the gradient of a function by central differences."""
    found = np.zeros_like(x)
    for place in itertools.product(*map(range, x.shape)):
        ahead, behind = x.copy(), x.copy()
        ahead[place] += step
        behind[place] -= step
        found[place] = (function(ahead) - function(behind)) / (2 * step)
    return found


OPTIONS: list[dict[str, Any]] = [
    {},
    {"level": "sequence"},
    {"dual_clip": 1.5},
    {"delta": 1.1},
    {"log_clamp": 0.4},
    {"level": "sequence", "log_clamp": 0.1},
    {"beta": 0.3},
    {"beta": 0.3, "kl_kind": "k2", "kl_clamp": 0.2},
    {"aggregate": "token-sum"},
    {"aggregate": "seq-mean-token-sum"},
    {"aggregate": "rollout-mean", "rollouts": [0, 1, 0]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "cispo"])
def test_the_gradient_of_a_policy_s_loss_is_exact(kind: PolicyKind, options: dict[str, Any]) -> None:
    for seed in range(3):
        new, old, adv, mask = played(seed)
        given = {"kind": kind, "ref": old - 0.2 if "beta" in options else None, **options}
        found = policy_loss(new, old, adv, mask, **given)
        expected = central(lambda x: policy_loss(x, old, adv, mask, **given).value, new)  # noqa: B023
        np.testing.assert_allclose(found.gradient, expected, atol=1e-6)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_of_an_answer_may_have_advantages_of_their_own(kind: PolicyKind, level: Level) -> None:
    new, old, adv, mask = played(1)
    given: dict[str, Any] = {"kind": kind, "level": level}
    one, each = (
        policy_loss(new, old, some, mask, **given)
        for some in (adv[:, 0], np.repeat(adv[:, :1], new.shape[1], axis=1))
    )
    assert each.value == pytest.approx(one.value, rel=1e-12)
    np.testing.assert_allclose(each.gradient, one.gradient, rtol=1e-12)
    assert each.metrics == pytest.approx(one.metrics)


def test_cispo_stops_the_gradient_at_its_ratio() -> None:
    new, old, adv, mask = played(1, 1.0)
    found = policy_loss(new, old, adv, mask, kind="cispo")
    weight = np.clip(np.exp(new - old), 0.8, 1.2)

    def stopped(x: np.ndarray) -> float:
        return float(-(weight * adv * x)[mask].sum() / mask.sum())

    assert found.value == pytest.approx(stopped(new))
    np.testing.assert_allclose(found.gradient, central(stopped, new), atol=1e-8)


@given(seeds, kinds)
def test_at_ratio_1_the_loss_is_minus_the_mean_advantage_and_nothing_is_clipped(
    seed: int, kind: PolicyKind
) -> None:
    _, old, adv, mask = played(seed)
    found = policy_loss(old, old, adv, mask, kind=kind, aggregate="token-mean", sequence_gradient="token")
    if kind not in ("cispo", "sapo"):
        assert found.value == pytest.approx(-adv[mask].mean())
    np.testing.assert_allclose(found.gradient, np.where(mask, -adv / mask.sum(), 0), atol=1e-9)
    assert [found.metrics[name] for name in ("clip_low", "clip_high", "clip_dual", "k1", "k3")] == [0] * 5


@given(seeds, kinds, st.sampled_from([np.nan, np.inf, -np.inf, 1e300]))
def test_what_is_masked_influences_nothing(seed: int, kind: PolicyKind, junk: float) -> None:
    new, old, adv, mask = played(seed)
    clean = policy_loss(new, old, adv, mask, kind=kind, ref=old, beta=0.1)
    dirty = policy_loss(
        *(np.where(mask, one, junk) for one in (new, old, adv)), mask, kind=kind, ref=old, beta=0.1
    )
    assert dirty.value == clean.value
    assert dirty.metrics == clean.metrics
    assert np.array_equal(dirty.gradient, clean.gradient)
    assert not dirty.gradient[~mask].any()


@given(
    kinds,
    st.sampled_from([200.0, -200.0]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([-1, 0, 1]),
)
def test_log_ratios_of_200_make_no_warning_and_are_finite_under_a_clamp(
    kind: PolicyKind, far: float, dtype: type, sign: int
) -> None:
    old = np.full((1, 2), -300, dtype)
    found = policy_loss(old + dtype(far), old, [float(sign)], kind=kind, log_clamp=20.0)
    assert math.isfinite(found.value)
    assert np.isfinite(found.gradient).all()
    assert found.gradient.dtype == dtype
    assert not math.isnan(policy_loss(old + dtype(far), old, [float(sign)], kind=kind).value)


@settings(max_examples=20)
@given(seeds, kinds)
def test_float32_agrees_with_float64_and_rows_in_many_blocks_with_one(seed: int, kind: PolicyKind) -> None:
    rng = np.random.default_rng(seed)
    old = -rng.exponential(1, (700, 60))
    new, adv = old + rng.normal(0, 0.3, old.shape), rng.normal(size=700)
    mask = rng.random(old.shape) < 0.9
    whole = policy_loss(new, old, adv, mask, kind=kind, aggregate="token-sum")
    parts = [
        policy_loss(new[rows], old[rows], adv[rows], mask[rows], kind=kind, aggregate="token-sum")
        for rows in (slice(0, 300), slice(300, None))
    ]
    assert whole.value == pytest.approx(sum(part.value for part in parts))
    assert np.array_equal(whole.gradient, np.concatenate([part.gradient for part in parts]))
    single = policy_loss(new.astype("f4"), old.astype("f4"), adv, mask, kind=kind, aggregate="token-sum")
    # the gradient jumps where a ratio is clipped: one within a rounding of that may fall on its other side
    other = ~np.isclose(single.gradient, whole.gradient, rtol=2e-3, atol=1e-3)
    assert other.sum() <= 3


@pytest.mark.parametrize("name", ["new", "old", "advantages"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_with_its_place(name: str, bad: float) -> None:
    given: dict[str, Any] = dict(zip(("new", "old", "advantages", "mask"), played(0), strict=True))
    given[name][0, 0] = bad
    with pytest.raises(ValueError, match=rf"{name}\[0, 0\] is {bad}"):
        policy_loss(**given)


def test_a_divergence_and_an_explained_variance_of_what_is_no_number_are_refused() -> None:
    bad = np.array([[0.0, math.nan]])
    with pytest.raises(ValueError, match=r"ref\[0, 1\] is nan"):
        kl(np.zeros((1, 2)), bad)
    with pytest.raises(ValueError, match=r"values\[1\] is nan"):
        explained_variance(bad[0], [1.0, 2.0])


def test_unknown_names_and_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="level is 'tokens'; it must be token or sequence"):
        policy_loss([[0.0]], [[0.0]], [1.0], level="tokens")  # type: ignore[arg-type]
    one = np.zeros(SHAPE)
    with pytest.raises(ValueError, match="kind is 'pop'; it must be one of ppo, grpo"):
        policy_loss(one, one, one, kind="pop")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="aggregate is 'mean'; it must be one of token-mean"):
        policy_loss(one, one, one, aggregate="mean")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'clip'"):
        policy_loss(one, one, one, clip=0.1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="needs rollout_B"):
        policy_loss(one, one, one, aggregate="rollout-mean")
    with pytest.raises(ValueError, match=r"advantages must have the shape \(3, 5\), got \(4,\)"):
        policy_loss(one, one, np.zeros(4))


def test_a_rollout_of_many_rows_weighs_as_much_as_one_of_a_single_row() -> None:
    adv = np.array([1.0, 1.0, -1.0])
    zero = np.zeros((3, 4))
    assert policy_loss(zero, zero, adv, aggregate="rollout-mean", rollouts=["a", "a", "b"]).value == 0
    assert policy_loss(zero, zero, adv).value == pytest.approx(-1 / 3)


def test_a_row_without_a_token_counts_where_trl_counts_it() -> None:
    zero, mask = np.zeros((2, 2)), [[1, 1], [0, 0]]
    assert policy_loss(zero, zero, [1.0, 1.0], mask, kind="grpo").value == -1
    assert policy_loss(zero, zero, [1.0, 1.0], mask, kind="grpo", empty="count").value == -0.5


@pytest.mark.parametrize("clip", [None, 0.1])
def test_the_gradient_of_a_critic_s_loss_is_exact(clip: float | None) -> None:
    rng = np.random.default_rng(3)
    v, old, wanted = rng.normal(0, 0.3, (3, *SHAPE))
    mask = rng.random(SHAPE) < 0.7
    found = value_loss(v, old, wanted, mask, clip=clip)
    expected = central(lambda x: value_loss(x, old, wanted, mask, clip=clip).value, v)
    np.testing.assert_allclose(found.gradient, expected, atol=1e-6)
    dirty = value_loss(*(np.where(mask, one, np.nan) for one in (v, old, wanted)), mask, clip=clip)
    assert dirty.value == found.value


def test_the_gradients_by_logits_are_exact() -> None:
    rng = np.random.default_rng(4)
    logits, actions = rng.normal(0, 2, (2, 3, 4)), rng.integers(0, 4, (2, 3))
    for place in itertools.product(range(2), range(3)):
        expected = central(lambda x: float(log_probs(x, actions).values[place]), logits)  # noqa: B023
        np.testing.assert_allclose(log_probs(logits, actions).gradient[place], expected[place], atol=1e-7)
        expected = central(lambda x: float(entropy(x).values[place]), logits)  # noqa: B023
        np.testing.assert_allclose(entropy(logits).gradient[place], expected[place], atol=1e-7)
    mask = np.array([[1, 0, 1], [1, 1, 0]])
    found = entropy_bonus(logits, mask)
    np.testing.assert_allclose(
        found.gradient, central(lambda x: entropy_bonus(x, mask).value, logits), atol=1e-7
    )
    with pytest.raises(ValueError, match="actions must be whole numbers from 0 to 3"):
        log_probs(logits, actions + 4)


def test_the_objective_of_ppo_is_the_sum_with_the_weights_of_decision_27() -> None:
    policy, value = Loss(1.0, {"k1": 0.1}, np.ones(2)), Loss(2.0, {"clip": 0.5}, np.ones(3))
    found = ppo_objective(policy, value, Loss(3.0, {}, np.ones(4)))
    assert found.value == pytest.approx(1 + 0.5 * 2 - 0.01 * 3)
    assert found.metrics == {"policy": 1, "value": 2, "entropy": 3, "policy_k1": 0.1, "value_clip": 0.5}
    np.testing.assert_allclose(found.value_gradient, 0.5)
    np.testing.assert_allclose(found.entropy_gradient, -0.01)


@given(seeds, st.sampled_from(["k1", "k2", "k3", "abs"]), st.sampled_from([None, 0.3]))
def test_a_divergence_is_0_from_itself_and_its_gradient_exact(
    seed: int, kind: KlKind, clamp: float | None
) -> None:
    new, old, *_ = played(seed)
    assert not kl(new, new, kind).any()
    expected = central(lambda x: float(kl(x, old, kind, log_clamp=0.7, clamp=clamp).sum()), new)
    np.testing.assert_allclose(kl_gradient(new, old, kind, log_clamp=0.7, clamp=clamp), expected, atol=1e-6)
    if kind != "k1":
        assert (kl(new, old, kind) >= 0).all()


def test_the_weight_of_a_divergence_follows_its_target() -> None:
    assert adaptive_kl(0.2, 0.02, 0.02, steps=100, horizon=1000) == 0.2
    assert adaptive_kl(0.2, 1.0, 0.02, steps=100, horizon=1000) == pytest.approx(0.2 * 1.02)
    assert adaptive_kl(0.2, 0.0, 0.02, steps=100, horizon=1000) == pytest.approx(0.2 * 0.98)


@pytest.mark.parametrize("name", ["clip_low", "clip_high", "dual_clip", "delta", "log_clamp", "norm", "beta"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1])
def test_a_number_that_no_loss_can_use_is_refused_by_name(name: str, value: float) -> None:
    new = [[-1.0, -0.5]]
    with pytest.raises(ValueError, match=name):
        policy_loss(new, new, [1.0], **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [{"target": math.nan}, {"target": 0.0}, {"horizon": 0}, {"found": math.inf}, {"clip": math.nan}],
)
def test_a_weight_that_follows_no_target_is_refused(changed: dict[str, float]) -> None:
    numbers: dict[str, Any] = {"weight": 0.2, "found": 0.1, "target": 0.02, "steps": 100, "horizon": 1000}
    with pytest.raises(ValueError, match=next(iter(changed))):
        adaptive_kl(**numbers | changed)


def test_explained_variance_is_1_for_perfect_values_and_unknown_for_equal_returns() -> None:
    assert explained_variance([1.0, 2.0], [1.0, 2.0]) == 1
    assert explained_variance([1.5, 1.5], [1.0, 2.0]) == 0
    assert math.isnan(explained_variance([1.0, 2.0], [3.0, 3.0]))


@pytest.mark.parametrize("kind", ["sigmoid", "ipo", "hinge", "robust", "nca"])
@pytest.mark.parametrize("reference", [True, False])
def test_the_gradients_of_preferences_are_exact(kind: PreferenceKind, reference: bool) -> None:
    good, bad, ref_good, ref_bad = np.random.default_rng(5).normal(-5, 3, (4, 6))
    refs = (ref_good, ref_bad) if reference else (None, None)
    options: dict[str, Any] = {"kind": kind, "beta": 0.3}
    options |= {"label_smoothing": 0.1} if kind in ("sigmoid", "robust") else {}
    found = dpo_loss(good, bad, *refs, **options)
    expected = central(lambda x: dpo_loss(x, bad, *refs, **options).value, good)
    np.testing.assert_allclose(found.chosen_gradient, expected, atol=1e-7)
    expected = central(lambda x: dpo_loss(good, x, *refs, **options).value, bad)
    np.testing.assert_allclose(found.rejected_gradient, expected, atol=1e-7)
    np.testing.assert_allclose(found.chosen_rewards, 0.3 * (good - (ref_good if reference else 0)))


def test_preferences_far_apart_make_no_warning_and_misuse_is_refused() -> None:
    assert dpo_loss([-1e4], [0.0], beta=1.0).value == pytest.approx(1e4)
    with pytest.raises(ValueError, match="go together"):
        dpo_loss([0.0], [0.0], [0.0])
    with pytest.raises(ValueError, match=r"label_smoothing is 0\.5"):
        dpo_loss([0.0], [0.0], label_smoothing=0.5)
    with pytest.raises(ValueError, match=r"rejected\[0\] is nan"):
        dpo_loss([0.0], [math.nan])


@pytest.mark.parametrize(("empty", "rollouts"), [("skip", 2), ("count", 3)])
def test_a_mean_over_rollouts_counts_these_and_not_their_rows(empty: Any, rollouts: int) -> None:
    mask = np.array([[1, 1], [1, 0], [1, 0], [0, 0]], dtype=bool)
    weights = row_weights(mask, "rollout-mean", empty=empty, rollout_B=["a", "a", "b", "c"])
    assert weights.tolist() == pytest.approx([1 / 3 / rollouts, 1 / 3 / rollouts, 1 / rollouts, 0.0])


def test_logits_far_apart_make_no_warning() -> None:
    logits = np.array([[1000.0, 0.0, -1000.0]])
    np.testing.assert_allclose(log_probs(logits, np.array([0])).values, [0.0])
    np.testing.assert_allclose(log_probs(logits, np.array([2])).values, [-2000.0])
    np.testing.assert_allclose(entropy(logits).values, [0.0], atol=1e-12)
