"""An evaluation as a readable table."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from valety_env.arena.evaluation import Evaluation, Result
from valety_env.arena.intervals import Interval
from valety_env.arena.sequential import BETTER, EQUAL, UNDECIDED, WORSE, Verdict

_NOTHING = "-"


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    """Return an estimate with its interval behind it, as far as there are such."""
    if value is None:
        return _NOTHING
    if interval is None:
        return f"{value:{form}} {_NOTHING}"
    return f"{value:{form}} [{interval[0]:{form}}, {interval[1]:{form}}]"


def evaluation_table(evaluation: Evaluation) -> Table:
    """Return the results as a table, a row for each."""
    results = evaluation.results
    several = len({result.agent for result in results}) > 1
    with_matches = any(result.match_pairs for result in results)
    by_seat = any(not result.duplicate for result in results)
    table = Table(box=box.SIMPLE_HEAD)
    if several:
        table.add_column("agent", overflow="fold")
    table.add_column("against", overflow="fold")
    table.add_column("deals", justify="right")
    table.add_column(Text("points a deal [95%]"), justify="right")
    if with_matches:
        table.add_column("matches", justify="right")
        table.add_column(Text("matches won [95%]"), justify="right")
    for result in results:
        # Texts, so that nothing in a name or an interval is taken for markup.
        points = _with_interval(result.points_per_deal, result.ci95, "+.3f")
        row = [result.agent] if several else []
        row += [result.opponent, str(result.pairs), points]
        if with_matches:
            won = _with_interval(result.match_win_rate, result.match_ci95, ".1%")
            row += [str(result.match_pairs), won]
        table.add_row(*map(Text, row))
        for seat in result.by_seat if by_seat else ():
            points = _with_interval(seat.points_per_deal, seat.ci95, "+.3f")
            row = [""] if several else []
            row += [f"  at seat {seat.seat}", str(seat.deals), points]
            table.add_row(*map(Text, row + ["", ""] * with_matches))
    return table


def _answer(result: Result, verdict: Verdict) -> str:
    """Return the answer to the question who is better in words."""
    answer = {
        BETTER: f"{result.agent} is better than {result.opponent}",
        WORSE: f"{result.agent} is worse than {result.opponent}",
        EQUAL: f"{result.agent} and {result.opponent} differ by less than {verdict.margin} points",
        UNDECIDED: f"it is not known whether {result.agent} is better than {result.opponent}",
    }[verdict.answer]
    told = f"{answer}, after {result.pairs} deals"
    if verdict.answer == UNDECIDED:
        return told
    return f"{told}; the chance that this is wrong is at most {verdict.error:.3g}"


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
    lines = [_answer(result, result.verdict) for result in evaluation.results if result.verdict]
    if first.duplicate:
        lines.append(
            "Deals and matches are duplicate: each was played with the agent at every seat in turn."
        )
    else:
        lines.append("Each deal and match was played once; the seats went round.")
    lines += [
        "Points are own deal points minus the mean of the others', charges negative.",
        f"Seed {evaluation.seed}; {told}",
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
