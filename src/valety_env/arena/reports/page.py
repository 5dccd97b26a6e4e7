"""A tournament as one HTML page that needs nothing else: no script, no other file, no network."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from valety_env.agents import needs_extra
from valety_env.agents.files import replacing
from valety_env.arena.reports.grids import behaviour_grid, curves_grid
from valety_env.arena.reports.words import (
    NOTHING,
    POINTS,
    half_width,
    measures,
    moves_text,
    versions_text,
    with_interval,
)
from valety_env.arena.tournament.standings import Cell, Standing, Standings
from valety_env.rules import parse_game

with needs_extra(__name__, "report", ("jinja2", "matplotlib")):
    import jinja2
    from markupsafe import Markup

    from valety_env.arena.reports.figures import (
        curve_figure,
        loss_figure,
        measure_figure,
        rates_figure,
    )

# Of a checkpoint's metadata, what is told.
_ABOUT = ("game", "step", "seed", "version")
# From here on white letters are read better.
_DARK = 0.65


def write_page(standings: Standings, path: str | Path) -> None:
    """Write a report; at any moment `path` holds a whole one, the old or the new."""
    with replacing(path) as temporary:
        temporary.write_text(make_page(standings), encoding="utf-8")


def make_page(standings: Standings) -> str:
    """Return a report as HTML."""
    source = resources.files(__package__).joinpath("page.html").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.from_string(source).render(_values(standings))


def _values(standings: Standings) -> dict[str, Any]:
    """Return what the page tells."""
    rows = standings.standings
    rules = parse_game(standings.game)[1]
    cells = standings.cells.values()
    once = 2 if rules.num_players == 2 else 1  # each pairing of two is in two cells
    told = measures(standings)
    most = max((abs(cell.points) for cell in cells if cell.deals), default=0.0) or 1.0
    opponents = dict.fromkeys(curve.opponent for curve in standings.curves)
    return {
        "game": standings.game,
        "seed": standings.seed,
        "seats": rules.num_players,
        "rules": json.dumps(rules.to_dict(), indent=1, ensure_ascii=False),
        "deals": sum(cell.deals for cell in cells) // once,
        "matches": sum(cell.matches for cell in cells) // once,
        "points": POINTS,
        "measures": told,
        "rows": [
            {
                "label": row.label,
                "move": moves_text(row.ms_a_move),
                "measures": [_split(measure.of(row), measure.form) for measure in told],
                "cells": [
                    _heat(standings.cells.get((place, other)), most) for other in range(len(rows))
                ],
            }
            for place, row in enumerate(rows)
        ],
        "measure_pictures": [Markup(measure_figure(standings, measure)) for measure in told],
        "curves": curves_grid(standings) if standings.curves else None,
        "curve_pictures": [
            Markup(curve_figure(name, [c for c in standings.curves if c.opponent == name]))
            for name in opponents
        ],
        "behaviour": behaviour_grid(standings) if any(row.behaviour for row in rows) else None,
        "solved": _solved(rows),
        "behaviour_pictures": [
            Markup(picture)
            for picture in (rates_figure(standings), loss_figure(standings))
            if picture is not None
        ],
        "sessions": [
            {**session, "versions": versions_text(session["versions"])}
            for session in standings.sessions
        ],
        "files": [
            {
                "name": row.label,
                "digest": row.entrant.digest,
                "about": ", ".join(
                    f"{key} {row.entrant.about[key]}" for key in _ABOUT if key in row.entrant.about
                ),
            }
            for row in rows
            if row.entrant.digest
        ],
    }


def _split(found: tuple[float, Any] | None, form: str) -> tuple[str, str]:
    """Return an estimate and its interval apart."""
    if found is None:
        return NOTHING, ""
    value, interval = found
    bounds = "" if interval is None else f"{interval[0]:{form}} … {interval[1]:{form}}"
    return f"{value:{form}}", bounds


def _heat(cell: Cell | None, most: float) -> dict[str, Any] | None:
    """Return a cell of the matrix: blue where the agent gains, orange where it loses."""
    if cell is None or not cell.deals:
        return None
    # The root shows small differences beside large ones.
    strength = (abs(cell.points) / most) ** 0.5
    end = (0, 90, 160) if cell.points > 0 else (190, 80, 0)
    red, green, blue = (round(255 + (part - 255) * strength) for part in end)
    won = "" if cell.win_rate is None else f"{cell.win_rate:.0%} won"
    title = f"{with_interval(cell.points, cell.ci95, '+.3f')}, {cell.deals} deals"
    if cell.win_rate is not None:
        title += f"; {with_interval(cell.win_rate, cell.win_ci95, '.1%')} of {cell.matches} matches"
    return {
        "colour": f"#{red:02x}{green:02x}{blue:02x}",
        "dark": strength > _DARK,
        "points": f"{cell.points:+.2f}",
        "half": half_width(cell.points, cell.ci95, ".2f"),
        "won": won,
        "title": title,
    }


def _solved(rows: tuple[Standing, ...]) -> str:
    """Return in how many deals plays were judged by search."""
    numbers = sorted({r.behaviour.loss_deals for r in rows if r.behaviour and r.behaviour.loss})
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"{numbers[0]} deals of each agent"
    return f"{numbers[0]} to {numbers[-1]} deals of each agent"
