"""The players other than the learner: who they are and what they are asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy import uint64

from valety_env._jit import int64, kernel
from valety_env.agents import Agent, UntrustedError, agent_name, agent_names, make_agent
from valety_env.engine import legal_actions
from valety_env.episode import IllegalActionError, Setup, decision_key
from valety_env.rng import mix
from valety_env.rules import Rules
from valety_env.view import look

Opponents = str | Agent | Sequence[str | Agent]

# The agents' seed is this draw of the table's seed; episodes and the tables of a batch take draws
# from the other end.
_AGENTS = uint64(2**64 - 2)


@kernel
def ask(
    rules: np.record,
    state: np.record,
    row: int,
    views: np.ndarray,
    legal: np.ndarray,
    keys: np.ndarray,
) -> None:
    """Write what an agent needs for the next decision at a table into one row of each array."""
    look(rules, state, int64(state.turn), views[row])
    legal[row] = legal_actions(rules, state)
    keys[row] = decision_key(mix(state.seed, _AGENTS), state)


@kernel
def ask_table(
    rules: np.ndarray,
    states: np.ndarray,
    views: np.ndarray,
    legal: np.ndarray,
    keys: np.ndarray,
) -> None:
    """Write what an agent needs for the next decision at the table `states[0]`."""
    ask(rules[0], states[0], 0, views, legal, keys)


@kernel
def ask_tables(
    rules: np.ndarray,
    states: np.ndarray,
    learners: np.ndarray,
    agent_at: np.ndarray,
    agent: int,
    waiting: np.ndarray,
    left: int,
    views: np.ndarray,
    legal: np.ndarray,
    keys: np.ndarray,
    tables: np.ndarray,
) -> int:
    """Write the questions to one agent, row by row, and return how many there are.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (N,).
        learners: (N,), the learner's seat at each table.
        agent_at: (players,), which agent plays that many seats after the learner.
        agent: which agent is asked.
        waiting: int64, tables at which an opponent is to act; those at which another agent is move
            to its front.
        left: how many they are.
        views: `VIEW`, one row a question, as the rest.
        legal: uint64.
        keys: uint64.
        tables: the table of each question.
    """
    players = int64(rules[0].num_players)
    rows = 0
    for j in range(left):
        i = int64(waiting[j])
        place = int64(states[i].turn) - int64(learners[i])
        if agent_at[place if place >= 0 else place + players] == agent:
            ask(rules[0], states[i], rows, views, legal, keys)
            tables[rows] = i
            rows += 1
        else:
            waiting[j - rows] = i
    return rows


class Line:
    """The players other than the learner, in the order of the seats after his.

    Attributes:
        agents: each once.
        agent_at: int64 (players,), the index of the agent so many seats after the learner, −1 for
            the learner himself.
    """

    def __init__(self, opponent: Opponents, rules: Rules) -> None:
        wanted = rules.num_players - 1
        if isinstance(opponent, (list, tuple)):
            given = list(opponent)
        else:
            given = [opponent] * wanted
        if len(given) != wanted:
            raise ValueError(
                f"opponent lists {len(given)} players: {rules.num_players} play, so it must be one "
                f"for all other seats or a list of {wanted}, clockwise from the seat after the "
                "learner's"
            )
        made: dict[str, Agent] = {}
        self.agents: list[Agent] = []
        self.agent_at = np.full(rules.num_players, -1, np.int64)
        for place, one in enumerate(given, 1):
            if isinstance(one, str):
                # Agents have no memory, so that one can play several seats.
                try:
                    agent = made[one] if one in made else make_agent(one, rules)
                except UntrustedError:
                    raise UntrustedError(
                        f"opponent={one!r} can run code when it is loaded; if you trust where it "
                        "comes from, give the agent itself, made by "
                        "valety_env.make_agent(name, rules, trust=True)"
                    ) from None
                made[one] = agent
            elif callable(getattr(one, "act", None)):
                agent = one
            else:
                raise ValueError(
                    f"opponent={one!r}: it must be an agent's name ({', '.join(agent_names())}) or "
                    "an object with act(views, legal, keys)"
                )
            known = [i for i, other in enumerate(self.agents) if other is agent]
            if not known:
                self.agents.append(agent)
            self.agent_at[place] = known[0] if known else len(self.agents) - 1

    def refuse(self, setup: Setup, agent: int, seat: int, action: int, legal: int) -> None:
        """Raise the error for an agent's illegal action."""
        where = f"opponent {agent_name(self.agents[agent])}: "
        raise IllegalActionError(setup.illegal_action(seat, action, legal, where))
