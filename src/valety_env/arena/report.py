"""An evaluation as a readable table."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from valety_env.arena.evaluation import Evaluation
from valety_env.arena.intervals import Interval

_NOTHING = "-"


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    """Return an estimate with its interval behind it, as far as there are such."""
    if value is None:
        return _NOTHING
    if interval is None:
        return f"{value:{form}} {_NOTHING}"
    return f"{value:{form}} [{interval[0]:{form}}, {interval[1]:{form}}]"


def evaluation_table(evaluation: Evaluation) -> Table:
    """Return the results as a table, a row for each opponent."""
    with_matches = any(result.match_pairs for result in evaluation.results)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("against", overflow="fold")
    table.add_column("deals", justify="right")
    table.add_column(Text("points a deal [95%]"), justify="right")
    if with_matches:
        table.add_column("matches", justify="right")
        table.add_column(Text("matches won [95%]"), justify="right")
    for result in evaluation.results:
        row = [
            result.opponent,
            str(result.pairs),
            _with_interval(result.points_per_deal, result.ci95, "+.3f"),
        ]
        if with_matches:
            won = _with_interval(result.match_win_rate, result.match_ci95, ".1%")
            row += [str(result.match_pairs), won]
        # Texts, so that nothing in a name or an interval is taken for markup.
        table.add_row(*map(Text, row))
    return table


def print_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print the results with what is needed to have them again: game, seed and versions.

    Args:
        evaluation: what to print.
        console: where; None: standard output.
    """
    out = console or Console(highlight=False)
    first = evaluation.results[0]
    out.print(Text(f"{first.agent} at {first.game}", style="bold"), soft_wrap=True)
    out.print(evaluation_table(evaluation))
    told = ", ".join(f"{name} {version}" for name, version in evaluation.versions.items())
    lines = (
        "Deals and matches are duplicate: each was played with the agent at every seat in turn.",
        "Points are own deal points minus the mean of the others', charges negative.",
        f"Seed {evaluation.seed}; {told}",
    )
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
