"""Make the vectors that `tests/numerics/test_references.py` checks, by running the reference libraries.

    pip install torch==2.15.0 trl==1.16.0 torchrl==0.14.1 rlax==0.1.9 stable-baselines3==2.9.2 ray
    pip install --no-deps verl==0.9.1
    python benchmarks/rl_references.py

Never a dependency, and not part of CI. Each vector is a call of ours and what the reference gives for it.
Code of TRL and Stable-Baselines3 in the middle of a long method runs as it stands there, cut out by its first
and last line.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import rlax
import stable_baselines3
import torch
import torchrl
import trl
import verl
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.utils import explained_variance
from torchrl.objectives.value import functional as torchrl_functional
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer
from trl.trainer.utils import nanstd
from verl.trainer.ppo import core_algos
from verl.utils import torch_functional

jax.config.update("jax_enable_x64", True)

OUT = Path(__file__).parents[1] / "tests" / "numerics" / "rl_vectors.jsonl"
VERSIONS = {
    "trl": trl.__version__,
    "verl": verl.__version__,
    "torchrl": torchrl.__version__,
    "rlax": rlax.__version__,
    "stable_baselines3": stable_baselines3.__version__,
    "torch": torch.__version__,
}
MASK_EPS = 1e-8
"""verl adds it to the number of tokens."""

vectors: list[dict[str, Any]] = []


def tidy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = np.asarray(value).tolist()
    if isinstance(value, dict):
        return {name: tidy(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(one) for one in value]
    return value


def keep(
    source: str, function: str, arguments: dict[str, Any], expected: Any, dtype: str, note: str = ""
) -> None:
    """Keep a vector: `function` of ours, called with `arguments`, gives `expected`."""
    vector = {
        "source": f"{source} {VERSIONS[source.split('.')[0]]}",
        "function": function,
        "dtype": dtype,
        "arguments": tidy(arguments),
        "expected": tidy(expected),
    }
    vectors.append({**vector, "note": note} if note else vector)


def lines_of(function: Callable[..., object], first: str, last: str) -> str:
    """Return the lines of a function's source from the one that holds `first` to that which holds `last`."""
    source = inspect.getsource(function)
    start = source.index(first)
    start = source.rindex("\n", 0, start) + 1
    end = source.index("\n", source.index(last, start))
    return textwrap.dedent(source[start:end])


def tensors(dtype: str, *arrays: np.ndarray) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    return [torch.tensor(one, dtype=kind) for one in arrays]


def masks(rng: np.random.Generator, shape: tuple[int, int], holes: bool = True) -> np.ndarray:
    lengths = rng.integers(1, shape[1] + 1, shape[0])
    mask = np.arange(shape[1]) < lengths[:, None]
    if holes:
        mask &= rng.random(shape) > 0.2
        mask[:, 0] = True
    return mask.astype(int)


def whitening(rng: np.random.Generator, dtype: str) -> None:
    for scale, shift in ((1.0, True), (1e-3, True), (100.0, False), (1.0, False)):
        x, mask = rng.normal(0.3, scale, (4, 6)), masks(rng, (4, 6))
        x_t, mask_t = tensors(dtype, x, mask)
        found = torch_functional.masked_whiten(x_t, mask_t, shift_mean=shift) * mask_t
        arguments = {"x": x, "mask": mask, "shift_mean": shift, "mask_eps": MASK_EPS}
        keep("verl.masked_whiten", "whiten", arguments, found, dtype)
    from stable_baselines3 import PPO

    code = lines_of(
        PPO.train, "if self.normalize_advantage and", "advantages = (advantages - advantages.mean())"
    )
    for size in (1, 2, 9, 40):
        x = rng.normal(2, 3, size)
        scope = {"self": SimpleNamespace(normalize_advantage=True), "advantages": tensors(dtype, x)[0]}
        exec(code, scope)
        arguments = {"x": x, "eps_in": "std", "single": "keep"}
        keep("stable_baselines3.PPO.train", "whiten", arguments, scope["advantages"], dtype)


def dense_gae(rng: np.random.Generator, dtype: str) -> None:
    for steps, width, gamma, lam in (
        (1, 2, 0.99, 0.95),
        (7, 3, 0.99, 0.95),
        (12, 2, 1.0, 1.0),
        (9, 2, 0.9, 0.0),
    ):
        r, v, after = (rng.normal(size=(steps, width)) for _ in range(3))
        over = rng.random((steps, width)) < 0.2
        cut = (rng.random((steps, width)) < 0.2) & ~over
        r_t, v_t, after_t = (one.T[..., None] for one in tensors(dtype, r, v, after))
        done_t, over_t = (torch.tensor((one).T[..., None]) for one in (over | cut, over))
        arguments = {
            "rewards": r,
            "values": v,
            "next_values": after,
            "terminated": over,
            "truncated": cut,
            "gamma": gamma,
            "lam": lam,
        }
        for name in ("generalized_advantage_estimate", "vec_generalized_advantage_estimate"):
            if name.startswith("vec") and lam == 0:
                continue
            found = getattr(torchrl_functional, name)(gamma, lam, v_t, after_t, r_t, done_t, over_t)
            both = [one[..., 0].T for one in found]
            keep(f"torchrl.{name}", "gae", arguments, both, dtype)
        starts, last, done = (
            rng.random((steps, width)) < 0.25,
            rng.normal(size=width),
            rng.random(width) < 0.5,
        )
        buffer = SimpleNamespace(
            buffer_size=steps,
            gamma=gamma,
            gae_lambda=lam,
            rewards=r.astype(dtype),
            values=v.astype(dtype),
            episode_starts=starts.astype(dtype),
            advantages=np.zeros((steps, width), dtype),
        )
        last_t = torch.tensor(last, dtype=getattr(torch, dtype))
        RolloutBuffer.compute_returns_and_advantage(buffer, last_t, done)
        arguments = {
            "rewards": r,
            "values": v,
            "episode_starts": starts,
            "last_values": last,
            "last_dones": done,
            "gamma": gamma,
            "lam": lam,
        }
        both = [buffer.advantages, buffer.returns]
        keep("stable_baselines3.RolloutBuffer", "gae_buffer", arguments, both, dtype)


def rlax_returns(rng: np.random.Generator, dtype: str) -> None:
    for steps, lam in ((1, 0.9), (6, 0.9), (6, 0.0), (15, 1.0)):
        r, d, v, v0 = (rng.normal(size=steps).astype(dtype) for _ in range(4))
        d = (0.97 * (rng.random(steps) > 0.2)).astype(dtype)
        found = rlax.lambda_returns(r, d, v, dtype_of(dtype, lam))
        keep(
            "rlax.lambda_returns",
            "lambda_returns",
            {"r_t": r, "discount_t": d, "v_t": v, "lam": lam},
            found,
            dtype,
        )
        found = rlax.discounted_returns(r, d, v)
        keep(
            "rlax.discounted_returns",
            "discounted_returns",
            {"r_t": r, "discount_t": d, "v_t": v},
            found,
            dtype,
        )
        for rho_scale, clip in ((0.5, 1.0), (2.0, 3.0)):
            log_rho = (rho_scale * rng.normal(size=steps)).astype(dtype)
            given = rlax.vtrace_td_error_and_advantage(
                v0, v, r, d, np.exp(log_rho), dtype_of(dtype, lam), clip, clip
            )
            arguments = {
                "v_tm1": v0,
                "v_t": v,
                "r_t": r,
                "discount_t": d,
                "log_rho_tm1": log_rho,
                "lam": lam,
                "clip_rho": clip,
                "clip_pg_rho": clip,
            }
            keep(
                "rlax.vtrace",
                "vtrace",
                arguments,
                [given.errors, given.pg_advantage, given.q_estimate],
                dtype,
            )
        values = np.concatenate([v0[:1], v])
        found = rlax.truncated_generalized_advantage_estimation(r, d, dtype_of(dtype, lam), values)
        arguments = {"rewards": r, "values": values[:-1], "next_values": v, "gamma": 0.97, "lam": lam}
        arguments |= {"terminated": d == 0, "truncated": np.zeros(steps, bool)}
        both = [found, np.asarray(found) + values[:-1]]
        keep("rlax.truncated_generalized_advantage_estimation", "gae", arguments, both, dtype)


def dtype_of(dtype: str, value: float) -> Any:
    return np.dtype(dtype).type(value)


def token_gae(rng: np.random.Generator, dtype: str) -> None:
    for gamma, lam, holes in ((1.0, 0.95, False), (0.99, 0.9, False), (0.99, 0.95, True), (1.0, 1.0, True)):
        r, v, mask = rng.normal(size=(3, 8)), rng.normal(size=(3, 8)), masks(rng, (3, 8), holes)
        r_t, v_t, mask_t = tensors(dtype, r, v, mask)
        whitened, returns = core_algos.compute_gae_advantage_return(r_t, v_t, mask_t, gamma, lam)
        advantages = (returns - v_t) * mask_t  # verl gives the advantages whitened alone
        arguments = {"rewards_BT": r, "values_BT": v, "mask_BT": mask, "gamma": gamma, "lam": lam}
        keep(
            "verl.compute_gae_advantage_return",
            "gae_tokens",
            arguments,
            [advantages, returns * mask_t],
            dtype,
        )
        arguments = {"x": advantages, "mask": mask, "mask_eps": MASK_EPS}
        keep("verl.compute_gae_advantage_return", "whiten", arguments, whitened * mask_t, dtype)
        config = SimpleNamespace(gamma=gamma)
        both = core_algos.compute_reinforce_plus_plus_outcome_advantage(r_t, mask_t, config)
        arguments = {"rewards_BT": r, "mask_BT": mask, "gamma": gamma, "mask_eps": MASK_EPS}
        keep("verl.reinforce_plus_plus", "reinforce_plus_plus", arguments, both, dtype)


def group_rewards(rng: np.random.Generator) -> list[tuple[np.ndarray, int]]:
    """Return rewards in groups that stand one after the other, with the size of a group."""
    graded = rng.random(12)
    solved = (rng.random(20) < 0.4).astype(float)
    return [(graded, 4), (solved, 5), (np.array([0.0, 1e-3, 0, 0, 1, 1]), 3), (rng.normal(size=8), 2)]


def grpo_advantages(rng: np.random.Generator, dtype: str) -> None:
    code = lines_of(
        GRPOTrainer._generate_and_score_completions,
        "mean_grouped_rewards = torch.nanmean(",
        "(std_rewards + 1e-4)",
    )
    for rewards, size in group_rewards(rng):
        groups = np.repeat(np.arange(len(rewards) // size), size)
        with_gap = rewards.copy()
        with_gap[0] = np.nan
        for scale in ("group", "batch", "none"):
            for given in (rewards, with_gap) if size > 2 else (rewards,):
                scope = {
                    "torch": torch,
                    "nanstd": nanstd,
                    "rewards": tensors(dtype, given)[0],
                    "num_generations": size,
                    "self": SimpleNamespace(scale_rewards=scale),
                }
                exec(code, scope)
                found = torch.nan_to_num(scope["advantages"], nan=0.0)
                arguments = {"rewards_N": given, "group_N": groups, "scale": scale}
                keep("trl.GRPOTrainer", "grpo_advantage", arguments, found, dtype)
        mask = np.ones((len(rewards), 1), int)
        scores, mask_t = tensors(dtype, rewards[:, None], mask)
        for scaled, index in ((True, groups), (False, groups), (True, np.arange(len(rewards)))):
            found, _ = core_algos.compute_grpo_outcome_advantage(
                scores.clone(), mask_t, index, norm_adv_by_std_in_grpo=scaled
            )
            arguments = {"rewards_N": rewards, "group_N": index, "eps": 1e-6, "singleton": "raw"}
            arguments["scale"] = "group" if scaled else "none"
            keep("verl.compute_grpo_outcome_advantage", "grpo_advantage", arguments, found[:, 0], dtype)
        for index in (groups, np.arange(len(rewards))):
            found, _ = core_algos.compute_rloo_outcome_advantage(scores.clone(), mask_t, index)
            arguments = {"rewards_N": rewards, "group_N": index, "singleton": "raw"}
            keep("verl.compute_rloo_outcome_advantage", "rloo_advantage", arguments, found[:, 0], dtype)


def rloo_advantages(rng: np.random.Generator, dtype: str) -> None:
    code = lines_of(
        RLOOTrainer._generate_and_score_completions, "grouped_rewards = rewards.view", "nan_to_num(advantages"
    )
    for rewards, size in group_rewards(rng):
        for normalise in (False, True):
            scope = {
                "torch": torch,
                "nanstd": nanstd,
                "rewards": tensors(dtype, rewards)[0],
                "num_generations": size,
                "self": SimpleNamespace(normalize_advantages=normalise),
            }
            exec(code, scope)
            groups = np.repeat(np.arange(len(rewards) // size), size)
            arguments = {"rewards_N": rewards, "group_N": groups, "normalise": normalise}
            keep("trl.RLOOTrainer", "rloo_advantage", arguments, scope["advantages"], dtype)


class _Metrics(dict):
    def __missing__(self, name: str) -> list[float]:
        self[name] = []
        return self[name]


def trl_policy(rng: np.random.Generator, dtype: str) -> None:
    shape = (3, 6)
    for kind in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo"):
        for level in ("token", "sequence"):
            if level == "sequence" and kind != "grpo":
                continue
            for beta, delta in ((0.0, None), (0.04, None), (0.0, 1.1)):
                if delta and kind in ("cispo", "sapo"):
                    continue
                _trl_policy(rng, dtype, shape, kind, level, beta, delta)


def _trl_policy(
    rng: np.random.Generator,
    dtype: str,
    shape: tuple[int, int],
    kind: str,
    level: str,
    beta: float,
    delta: float | None,
) -> None:
    old = np.log(rng.uniform(0.05, 1, shape))
    new, ref = old + rng.normal(0, 0.4, shape), old + rng.normal(0, 0.3, shape)
    advantages, mask = rng.normal(size=shape[0]), masks(rng, shape)
    new_t, old_t, ref_t, advantages_t, mask_t = tensors(dtype, new, old, ref, advantages, mask)
    new_t.requires_grad_()
    metrics = _Metrics()
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (new_t, torch.zeros_like(new_t), None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=beta,
        loss_type=kind,
        epsilon_low=0.2,
        epsilon_high=3.0 if kind == "cispo" else 0.28,
        args=SimpleNamespace(
            delta=delta,
            use_bias_correction_kl=False,
            sapo_temperature_pos=1.0,
            sapo_temperature_neg=1.05,
            steps_per_generation=1,
        ),
        use_vllm=False,
        model=SimpleNamespace(training=False),
        current_gradient_accumulation_steps=1,
        max_completion_length=10,
        accelerator=SimpleNamespace(num_processes=1, reduce=lambda x, **_: x, gather=lambda x: x),
        _entropy_bonus_enabled=False,
        _metrics={"eval": metrics},
    )
    ids = torch.zeros((shape[0], 1), dtype=torch.long)
    inputs = {
        "prompt_ids": ids,
        "prompt_mask": ids + 1,
        "completion_ids": torch.zeros(shape, dtype=torch.long),
        "completion_mask": mask_t,
        "advantages": advantages_t,
        "old_per_token_logps": old_t,
        "ref_per_token_logps": ref_t,
        "num_items_in_batch": mask_t.sum(),
    }
    loss = GRPOTrainer._compute_loss(trainer, None, inputs)
    loss.backward()
    arguments = {"new": new, "old": old, "advantages": advantages, "mask": mask, "kind": kind, "level": level}
    arguments |= {
        "clip_low": 0.2,
        "clip_high": 0.28,
        "empty": "count",
        "norm": 10.0 if kind == "dr_grpo" else None,
    }
    if kind == "cispo":
        arguments |= {"clip_low": 1.0, "clip_high": 2.0}  # TRL's epsilon_high 3 is the largest ratio itself
    if beta:
        arguments |= {"ref": ref, "beta": beta}
    if delta:
        arguments["delta"] = delta
    expected = {"value": loss, "gradient": new_t.grad}
    if kind not in ("cispo", "sapo") and level == "token" and not delta:  # with it, TRL counts bounded ratios
        expected["metrics"] = {
            "clip_low": metrics["clip_ratio/low_mean"][0],
            "clip_high": metrics["clip_ratio/high_mean"][0],
        }
    keep("trl.GRPOTrainer._compute_loss", "policy_loss", arguments, expected, dtype)


def verl_policy(rng: np.random.Generator, dtype: str) -> None:
    shape = (4, 5)
    aggregates = (
        "token-mean",
        "token-sum",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
        "seq-mean-token-mean",
    )
    for name, kind in (("vanilla", "ppo"), ("gspo", "gspo"), ("sapo", "sapo"), ("cispo", "cispo")):
        for aggregate in aggregates:
            if kind == "sapo" and aggregate != "seq-mean-token-mean":
                continue
            for spread in (0.3, 2.0):
                old = np.log(rng.uniform(0.02, 1, shape))
                new = old + rng.normal(0, spread, shape)
                advantages, mask = rng.normal(size=shape), masks(rng, shape)
                new_t, old_t, advantages_t, mask_t = tensors(dtype, new, old, advantages, mask)
                new_t.requires_grad_()
                found = _verl_loss(name, aggregate, new_t, old_t, advantages_t, mask_t)
                found.backward()
                arguments = {"new": new, "old": old, "advantages": advantages, "mask": mask, "kind": kind}
                arguments |= {"aggregate": aggregate, "clip_low": 0.2, "clip_high": 0.3}
                arguments |= {"mask_eps": MASK_EPS if aggregate == "seq-mean-token-mean" else 0.0}
                if kind == "ppo":
                    arguments["dual_clip"] = 3.0
                if kind == "gspo":
                    arguments["sequence_gradient"] = "token"
                else:
                    arguments["log_clamp"] = 20.0
                expected = {"value": found, "gradient": new_t.grad}
                keep(f"verl.compute_policy_loss_{name}", "policy_loss", arguments, expected, dtype)


def _verl_loss(name: str, aggregate: str, *arrays: torch.Tensor) -> torch.Tensor:
    from verl.workers.config import FSDPActorConfig

    new, old, advantages, mask = arrays
    config = FSDPActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio=0.2,
        clip_ratio_low=0.2,
        clip_ratio_high=0.3,
        clip_ratio_c=3.0,
        tau_pos=1.0,
        tau_neg=1.05,
    )
    found = getattr(core_algos, f"compute_policy_loss_{name}")(old, new, advantages, mask, aggregate, config)
    return found[0]


def divergences(rng: np.random.Generator, dtype: str) -> None:
    for spread in (0.1, 1.0, 6.0):
        for kind in ("k1", "k2", "k3", "abs"):
            new, ref = -rng.exponential(2, (2, 5)), -rng.exponential(2, (2, 5)) * spread
            new_t, ref_t = tensors(dtype, new, ref)
            arguments = {"new": new, "ref": ref, "kind": kind}
            if kind == "k3":
                arguments |= {"log_clamp": 20.0, "clamp": 10.0}
            keep("verl.kl_penalty", "kl", arguments, core_algos.kl_penalty(new_t, ref_t, kind), dtype)
    for found in (0.001, 0.02, 0.5):
        controller = core_algos.AdaptiveKLController(0.2, 0.02, 1000)
        controller.update(found, 64)
        arguments = {"weight": 0.2, "found": found, "target": 0.02, "steps": 64, "horizon": 1000}
        keep("verl.AdaptiveKLController", "adaptive_kl", arguments, controller.value, dtype)


def trl_divergences(rng: np.random.Generator, dtype: str) -> None:
    grpo = lines_of(GRPOTrainer._compute_loss, "per_token_kl = (", "- per_token_logps) - 1") + "\n)"
    rloo = lines_of(RLOOTrainer._generate_and_score_completions, "per_token_kl = old", "per_token_kl = old")
    for spread in (0.1, 1.0, 6.0):
        new, ref = -rng.exponential(2, (2, 5)), -rng.exponential(2, (2, 5)) * spread
        new_t, ref_t = tensors(dtype, new, ref)
        for name, kind, code in (("GRPOTrainer._compute_loss", "k3", grpo), ("RLOOTrainer", "k1", rloo)):
            scope = {
                "torch": torch,
                "per_token_logps": new_t,
                "old_per_token_logps": new_t,
                "ref_per_token_logps": ref_t,
            }
            exec(code, scope)
            keep(f"trl.{name}", "kl", {"new": new, "ref": ref, "kind": kind}, scope["per_token_kl"], dtype)


def critics(rng: np.random.Generator, dtype: str) -> None:
    for aggregate in ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum"):
        for clip in (0.2, 0.05):
            v, old, wanted = (rng.normal(size=(3, 6)) for _ in range(3))
            v, mask = old + 0.3 * v, masks(rng, (3, 6))
            v_t, old_t, wanted_t, mask_t = tensors(dtype, v, old, wanted, mask)
            v_t.requires_grad_()
            loss, _ = core_algos.compute_value_loss(v_t, wanted_t, old_t, mask_t, clip, aggregate)
            loss.backward()
            arguments = {"values": v, "old_values": old, "returns": wanted, "mask": mask, "clip": clip}
            arguments |= {
                "aggregate": aggregate,
                "mask_eps": MASK_EPS if aggregate.endswith("n-mean") else 0.0,
            }
            if aggregate == "token-mean":
                arguments["mask_eps"] = 0.0
            keep(
                "verl.compute_value_loss",
                "value_loss",
                arguments,
                {"value": loss, "gradient": v_t.grad},
                dtype,
            )
        v, wanted = rng.normal(size=20), rng.normal(size=20)
        both = {"values": v, "returns": wanted}
        keep(
            "stable_baselines3.explained_variance",
            "explained_variance",
            both,
            explained_variance(v, wanted),
            dtype,
        )


def distributions(rng: np.random.Generator, dtype: str) -> None:
    for scale in (0.1, 1.0, 10.0):
        logits, actions = rng.normal(0, scale, (3, 4, 5)), rng.integers(0, 5, (3, 4))
        (logits_t,) = tensors(dtype, logits)
        actions_t = torch.tensor(actions)
        found = torch_functional.logprobs_from_logits_naive(logits_t, actions_t)
        keep(
            "verl.logprobs_from_logits_naive",
            "log_probs",
            {"logits": logits, "actions": actions},
            {"values": found},
            dtype,
        )
        found = torch.distributions.Categorical(logits=logits_t).log_prob(actions_t)
        keep(
            "torch.Categorical.log_prob",
            "log_probs",
            {"logits": logits, "actions": actions},
            {"values": found},
            dtype,
        )
        found = torch_functional.entropy_from_logits(logits_t)
        keep("verl.entropy_from_logits", "entropy", {"logits": logits}, {"values": found}, dtype)
        found = rlax.softmax().entropy(logits.astype(dtype))
        keep("rlax.softmax.entropy", "entropy", {"logits": logits}, {"values": found}, dtype)


def preferences(rng: np.random.Generator, dtype: str) -> None:
    source = inspect.getsource(DPOTrainer._compute_loss)
    start = source.index('if loss_type == "sigmoid":')
    start = source.rindex("\n", 0, start) + 1
    end = source.index("else:\n", source.index('elif loss_type == "sigmoid_norm":'))
    end = source.rindex("\n", 0, end) + 1
    code = textwrap.dedent(source[start:end])
    names = {"nca": "nca_pair"}
    for kind in ("sigmoid", "hinge", "ipo", "nca", "robust"):
        for beta in (0.1, 0.5):
            good, bad, ref_good, ref_bad = (rng.normal(-8, 4, 6) for _ in range(4))
            good_t, bad_t, ref_good_t, ref_bad_t = tensors(dtype, good, bad, ref_good, ref_bad)
            for one in (good_t, bad_t):
                one.requires_grad_()
            chosen, rejected = good_t - ref_good_t, bad_t - ref_bad_t
            smoothing = 0.1 if kind == "robust" else 0.0
            scope = {
                "torch": torch,
                "F": torch.nn.functional,
                "loss_type": names.get(kind, kind),
                "self": SimpleNamespace(beta=beta, label_smoothing=smoothing),
                "delta_score": chosen - rejected,
                "chosen_scores": chosen,
                "rejected_scores": rejected,
                "chosen_logratios": chosen,
                "rejected_logratios": rejected,
                "completion_mask": torch.ones((12, 1)),
            }
            exec(code, scope)
            loss = scope["per_sequence_loss"].mean()
            loss.backward()
            arguments = {"chosen": good, "rejected": bad, "ref_chosen": ref_good, "ref_rejected": ref_bad}
            arguments |= {"kind": kind, "beta": beta, "label_smoothing": smoothing}
            expected = {"value": loss, "chosen_gradient": good_t.grad, "rejected_gradient": bad_t.grad}
            keep("trl.DPOTrainer._compute_loss", "dpo_loss", arguments, expected, dtype)


PARTS = (
    whitening,
    dense_gae,
    rlax_returns,
    token_gae,
    grpo_advantages,
    rloo_advantages,
    trl_policy,
    verl_policy,
    divergences,
    critics,
    distributions,
    preferences,
    trl_divergences,
)


def main() -> None:
    for seed, part in enumerate(PARTS):
        for dtype in ("float64", "float32"):
            torch.set_default_dtype(getattr(torch, dtype))  # else a count + 1e-8 is rounded to float32
            part(np.random.default_rng(seed), dtype)
    OUT.write_text("".join(json.dumps(vector) + "\n" for vector in vectors))
    print(f"{len(vectors)} vectors in {OUT.name}, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
