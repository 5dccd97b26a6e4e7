"""The tables of a tournament as rows of words, which a terminal and Markdown show."""

from __future__ import annotations

from dataclasses import dataclass

from valety_env.arena.behaviour import RATES
from valety_env.arena.reports.words import (
    NOTHING,
    half_width,
    measures,
    moves_text,
    rate_text,
    with_interval,
)
from valety_env.arena.tournament.standings import Standings


@dataclass(frozen=True)
class Grid:
    """A table: the first column is text, the others are numbers.

    Attributes:
        header: of each column.
        rows: of cells; a line break parts a number from its interval.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def standings_grid(standings: Standings) -> Grid:
    """Return who stands where, a row for each."""
    columns = measures(standings)
    rows = []
    for place, row in enumerate(standings.standings, 1):
        cells = [f"{place} {row.label}"]
        for measure in columns:
            found = measure.of(row)
            cells.append(NOTHING if found is None else with_interval(*found, measure.form))
        rows.append((*cells, moves_text(row.ms_a_move)))
    titles = [f"{measure.title} [95%]" for measure in columns]
    return Grid(("agent", *titles, "a move"), tuple(rows))


def matrix_grid(standings: Standings) -> Grid:
    """Return the points of each (row) where another (column) sat at all other seats."""
    everybody = range(len(standings.standings))
    rows = []
    for place, row in enumerate(standings.standings):
        cells = [f"{place + 1} {row.label}"]
        for other in everybody:
            cell = standings.cells.get((place, other))
            if cell is None or not cell.deals:
                cells.append("")
            else:
                cells.append(f"{cell.points:+.2f}\n{half_width(cell.points, cell.ci95, '.2f')}")
        rows.append(tuple(cells))
    return Grid(("points a deal against", *(str(n + 1) for n in everybody)), tuple(rows))


def curves_grid(standings: Standings) -> Grid:
    """Return the learning curves, a row for each checkpoint."""
    rows = [
        (
            curve.run,
            curve.opponent,
            f"{point.step:,}",
            str(point.deals),
            with_interval(point.points, point.ci95, "+.3f"),
        )
        for curve in standings.curves
        for point in curve.points
    ]
    return Grid(("run", "against", "step", "deals", "points a deal [95%]"), tuple(rows))


def behaviour_grid(standings: Standings) -> Grid:
    """Return what everybody does how often, a column for each."""
    known = [(n, row.behaviour) for n, row in enumerate(standings.standings, 1) if row.behaviour]
    rows = []
    for name in RATES:
        told = [rate_text(behaviour.rates[name]) for _, behaviour in known]
        if any(text != NOTHING for text in told):
            rows.append((name, *told))
    losses = [behaviour.loss for _, behaviour in known]
    if any(losses):
        told = [
            NOTHING if loss is None else f"{loss[0]:.2f} {half_width(*loss, '.2f')}"
            for loss in losses
        ]
        rows.append(("points a deal lost against the best cards", *told))
    return Grid(("", *(str(n) for n, _ in known)), tuple(rows))
