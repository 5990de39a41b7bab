"""Time the mathematics of policy learning against the libraries that it agrees with.

    pip install torch==2.15.0 torchrl==0.14.1 stable-baselines3==2.9.2
    python benchmarks/rl_math.py [--rounds 7]

Prints medians over rounds that alternate between the two of a pair, their ratio, and the bandwidth of memory
measured in the same run. Peers are needed for this script alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import torch
from stable_baselines3.common.buffers import RolloutBuffer
from torchrl.objectives.value import functional

from pytest_tfgrpo.numerics.rl.losses import policy_loss
from pytest_tfgrpo.numerics.rl.returns import gae, gae_buffer, gae_packed

Work = Callable[[], object]


def pair(ours: Work, peer: Work, rounds: int) -> tuple[float, float]:
    """Return the median seconds of both, run in turns after one round that does not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):
        for work, found in zip((ours, peer), times, strict=True):
            began = time.perf_counter()
            work()
            found.append(time.perf_counter() - began)
    return statistics.median(times[0][1:]), statistics.median(times[1][1:])


def show(name: str, ours: float, peer: float, peer_name: str) -> None:
    print(f"{name:<46} {ours * 1e3:9.1f} ms   {peer_name:<26} {peer * 1e3:9.1f} ms   {peer / ours:6.2f} x")


def bandwidth(rounds: int) -> float:
    """Return bytes per second of a copy, counting what is read and what is written."""
    source = np.ones(64 << 20, np.uint8)
    target = np.empty_like(source)
    seconds, _ = pair(lambda: np.copyto(target, source), lambda: None, rounds)
    return 2 * source.nbytes / seconds


def packed(rounds: int) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 65, 10_000)
    n = int(lengths.sum())
    rewards, values, over = rng.normal(size=n), rng.normal(size=n), rng.random(10_000) < 0.5
    last = rng.normal(size=10_000)
    starts = np.cumsum(lengths) - lengths

    def loop() -> list[float]:
        advantages = [0.0] * n
        r, v = rewards.tolist(), values.tolist()
        for start, length, end, after in zip(
            starts.tolist(), lengths.tolist(), over.tolist(), last.tolist(), strict=True
        ):
            carry, following = 0.0, 0.0 if end else after
            for t in range(start + length - 1, start - 1, -1):
                carry = r[t] + 0.99 * following - v[t] + 0.99 * 0.95 * carry
                following = v[t]
                advantages[t] = carry
        return advantages

    def per_trajectory() -> None:
        for start, length, end, after in zip(starts, lengths, over, last, strict=True):
            steps = slice(start, start + length)
            following = np.append(values[start + 1 : start + length], 0.0 if end else after)
            delta = rewards[steps] + 0.99 * following - values[steps]
            found, carry = np.empty(length), 0.0
            for t in range(length - 1, -1, -1):
                carry = delta[t] + 0.99 * 0.95 * carry
                found[t] = carry

    def ours() -> object:
        return gae_packed(rewards, values, lengths, over, last)

    np.testing.assert_allclose(gae_packed(rewards, values, lengths, over, last)[0], loop())
    show(
        f"GAE, 10,000 trajectories, {n:,} steps packed",
        *pair(ours, per_trajectory, rounds),
        "a loop over numpy",
    )
    show("", *pair(ours, loop, rounds), "a loop over lists")


def dense(rounds: int, speed: float) -> None:
    rng = np.random.default_rng(1)
    shape = (2048, 4096)
    r, v, after = (rng.normal(size=shape).astype(np.float32) for _ in range(3))
    over = rng.random(shape) < 0.01
    none = np.zeros(shape, bool)
    buffer = SimpleNamespace(
        buffer_size=shape[0],
        gamma=0.99,
        gae_lambda=0.95,
        rewards=r,
        values=v,
        episode_starts=over.astype(np.float32),
        advantages=np.zeros(shape, np.float32),
    )
    last, done = torch.tensor(after[-1]), over[-1]
    starts = over.copy()
    seconds, peer = pair(
        lambda: gae_buffer(r, v, starts, after[-1], done),
        lambda: RolloutBuffer.compute_returns_and_advantage(buffer, last, done),
        rounds,
    )
    show("GAE, 2048 x 4096, float32, a buffer", seconds, peer, "Stable-Baselines3")
    tensors = [torch.tensor(one.T[..., None].copy()) for one in (v, after, r)]
    ends = torch.tensor(over.T[..., None].copy())
    seconds, peer = pair(
        lambda: gae(r, v, after, over, none),
        lambda: functional.generalized_advantage_estimate(0.99, 0.95, *tensors, ends, ends),
        max(rounds // 2, 2),
    )
    show("GAE, 2048 x 4096, float32", seconds, peer, "torchrl")
    moved = 5 * r.nbytes + 2 * over.nbytes
    print(f"{'':<46} {seconds * speed / moved:9.2f} times as long as moving its {moved >> 20} MB")


def loss(rounds: int) -> None:
    rng = np.random.default_rng(2)
    shape = (8192, 1024)
    old = -rng.exponential(1, shape).astype(np.float32)
    new = old + rng.normal(0, 0.1, shape).astype(np.float32)
    advantages = rng.normal(size=shape[0]).astype(np.float32)
    new_t, old_t = torch.tensor(new, requires_grad=True), torch.tensor(old)
    advantages_t = torch.tensor(advantages)[:, None]
    mask = np.ones(shape, bool)
    mask_t = torch.ones(shape)

    def peer() -> None:
        new_t.grad = None
        ratio = torch.exp(new_t - old_t)
        one, two = ratio * advantages_t, torch.clamp(ratio, 0.8, 1.2) * advantages_t
        value = (-torch.min(one, two) * mask_t).sum() / mask_t.sum()
        value.backward()

    show(
        "PPO loss with gradient, 8 million tokens",
        *pair(lambda: policy_loss(new, old, advantages, mask), peer, max(rounds // 2, 2)),
        f"torch, {torch.get_num_threads()} threads",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    speed = bandwidth(rounds)
    print(f"memory: {speed / 1e9:.1f} GB/s")
    packed(rounds)
    dense(rounds, speed)
    loss(rounds)


if __name__ == "__main__":
    main()
