"""Numbers as words, the same in every report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from valety_env.arena.behaviour import Rate
from valety_env.arena.intervals import Interval
from valety_env.arena.tournament.standings import Standing, Standings

NOTHING = "-"
POINTS = "Points are own deal points minus the mean of the others', charges negative."
RATINGS = "Ratings are Bradley-Terry's on Elo's scale, around 0; intervals are over deals."


def with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    """Return an estimate with its interval behind it, as far as there are such."""
    if value is None:
        return NOTHING
    if interval is None:
        return f"{value:{form}} {NOTHING}"
    return f"{value:{form}} [{interval[0]:{form}}, {interval[1]:{form}}]"


def half_width(value: float, interval: Interval | None, form: str) -> str:
    """Return how far an interval reaches from its estimate, the further side."""
    if interval is None:
        return ""
    return f"±{max(value - interval[0], interval[1] - value):{form}}"


def rate_text(rate: Rate | None) -> str:
    """Return a rate in percent, with half of its interval."""
    if rate is None:
        return NOTHING
    percent = 100.0 * rate.rate
    bounds = None if rate.ci95 is None else (100.0 * rate.ci95[0], 100.0 * rate.ci95[1])
    digits = 1 if percent >= 1.0 or percent == 0.0 else 3
    return f"{percent:.{digits}f}% {half_width(percent, bounds, f'.{digits}f')}".strip()


def moves_text(milliseconds: float | None) -> str:
    """Return how long a move takes."""
    return NOTHING if milliseconds is None else f"{float(f'{milliseconds:.2g}'):,.10g} ms"


def versions_text(versions: Mapping[str, str]) -> str:
    """Return names with their versions."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def short(label: str, most: int = 28) -> str:
    """Return a label that fits into a picture: of a longer one the end, which tells most."""
    return label if len(label) <= most else f"…{label[1 - most :]}"


@dataclass(frozen=True)
class Measure:
    """A number by which those who take part are compared.

    Attributes:
        title: what it is called.
        form: how it is written.
        of: returns it with its interval; None if somebody has none.
    """

    title: str
    form: str
    of: Callable[[Standing], tuple[float, Interval | None] | None]


def _match_rating(row: Standing) -> tuple[float, Interval | None] | None:
    return None if row.match_rating is None else (row.match_rating.elo, row.match_rating.ci95)


def _deal_rating(row: Standing) -> tuple[float, Interval | None] | None:
    return None if row.deal_rating is None else (row.deal_rating.elo, row.deal_rating.ci95)


def measures(standings: Standings) -> list[Measure]:
    """Return the measures that anybody has."""
    known = [
        Measure("rating from matches", "+.0f", _match_rating),
        Measure("rating from deals", "+.0f", _deal_rating),
        Measure("points a deal", "+.3f", lambda row: row.field),
        Measure("at mixed tables", "+.3f", lambda row: row.mixed),
    ]
    return [m for m in known if any(m.of(row) is not None for row in standings.standings)]
