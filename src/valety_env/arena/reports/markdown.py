"""A tournament as Markdown, for documentation and issues."""

from __future__ import annotations

import re

from valety_env.arena.reports.grids import (
    Grid,
    behaviour_grid,
    curves_grid,
    matrix_grid,
    standings_grid,
)
from valety_env.arena.reports.words import POINTS, RATINGS, versions_text
from valety_env.arena.tournament.standings import Standings


def make_markdown(standings: Standings, level: int = 1) -> str:
    """Return what a tournament's games come to.

    Args:
        standings: what to tell.
        level: of the headings, 1…4.

    Returns:
        Markdown; it ends with a line break.
    """
    marks = "#" * level
    deals = {cell.deals for cell in standings.cells.values()} - {0}
    matches = {cell.matches for cell in standings.cells.values()} - {0}
    told = f"{_span(deals)} duplicate deals"
    told += f" and {_span(matches)} duplicate matches" if matches else ""
    parts = [
        f"{marks} Tournament at {_plain(standings.game)}",
        f"{told} of each pairing. {POINTS} {RATINGS}",
        _table(standings_grid(standings)),
        "Points a deal of the agent in the row against the agent in the column:",
        _table(matrix_grid(standings)),
    ]
    if standings.curves:
        parts += [f"{marks}# Learning curves", _table(curves_grid(standings))]
    if any(row.behaviour for row in standings.standings):
        parts += [f"{marks}# How they play", _table(behaviour_grid(standings))]
    parts.append(f"{marks}# To have the same again")
    for session in standings.sessions:
        parts.append(f"{session['started']}: {_plain(versions_text(session['versions']))}")
        if session["command"]:
            parts.append(f"    {session['command']}")
    return "\n\n".join(parts) + "\n"


def _span(numbers: set[int]) -> str:
    """Return a number, or from where to where several lie."""
    if not numbers:
        return "0"
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _plain(text: str) -> str:
    """Return a text in which nothing means anything to Markdown."""
    return re.sub(r"([\\`*_<|~&])", r"\\\1", text.replace("\n", " ")).strip()


def _table(grid: Grid) -> str:
    """Return a table."""
    lines = [_row(grid.header), "|---|" + "---:|" * (len(grid.header) - 1)]
    return "\n".join([*lines, *map(_row, grid.rows)])


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"
