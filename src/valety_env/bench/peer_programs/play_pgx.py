"""PGX on the CPU: a batch of games, choosing and stepping compiled into one function.

As its documentation has it: `jax.jit` over `jax.vmap`, with `auto_reset`; several steps go into one
call by `jax.lax.scan`, so that calls from Python cost nothing.
"""

import os
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pgx
from pgx.experimental import auto_reset
from serve import Case, seed, serve

GAMES = 4096
STEPS = 16


def play(name: str) -> Iterator[int]:
    """Play random legal actions; finished games start anew within the step."""
    environment = pgx.make(name)
    step = jax.vmap(auto_reset(environment.step, environment.init))

    def one_step(state, key):
        choosing, playing = jax.random.split(key)
        # The largest of one draw an action, over the legal ones, is a uniform choice.
        draws = jax.random.uniform(choosing, state.legal_action_mask.shape)
        actions = (draws * state.legal_action_mask + state.legal_action_mask).argmax(axis=-1)
        state = step(state, actions, jax.random.split(playing, GAMES))
        return state, state.rewards.sum()

    @jax.jit
    def run(state, key):
        return jax.lax.scan(one_step, state, jax.random.split(key, STEPS))

    key = jax.random.PRNGKey(seed())
    state = jax.jit(jax.vmap(environment.init))(jax.random.split(key, GAMES))
    while True:
        key, now = jax.random.split(key)
        state, rewards = run(state, now)
        jax.block_until_ready((state, rewards))
        yield GAMES * STEPS


NOTE = "4,096 games"
CASES = [
    Case("leduc", "leduc_holdem", "batch", lambda: play("leduc_holdem"), NOTE),
    Case("connect-four", "connect_four", "batch", lambda: play("connect_four"), NOTE),
    Case("kuhn", "kuhn_poker", "batch", lambda: play("kuhn_poker"), NOTE),
]

if __name__ == "__main__":
    serve(CASES, ["pgx", "jax"])
