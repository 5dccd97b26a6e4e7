"""Print docs/observations.md: what each entry of each observation means, from the layouts.

python tools/print_layouts.py > docs/observations.md
"""

from valety_env.episode import state_layout
from valety_env.observations import ENCODERS, Layout, make_encoder
from valety_env.rules import Rules, make_rules

INTRODUCTION = """# Observations

Each observation is what one seat knows, from its own side: seat 0 of a field is the viewer, seat 1
the next clockwise, and the fields of seats that the game does not have are zero. Cards are numbered
13 × suit + place of the rank in `rank_order`, suits ♠ ♣ ♦ ♥. All entries are whole numbers,
whatever the dtype. There is one shape for games of two players and one for games of three to seven.
A released encoder never changes: what differs gets a new name.

A *thermometer* of n entries shows a number from 0 to n as so many ones, then zeros.

This page is printed by `tools/print_layouts.py`.
"""

# An encoder's name: what to say of it.
WORDS = {
    "flat_v0": "The default: one row of 0 and 1.",
    "planes_v0": (
        "Planes of 4 suits × 13 ranks, 0 or 1, for convolutions. The entries are those of the flat "
        "memory; a field of n planes is n × 52 of them."
    ),
    "tokens_v0": (
        "The public events of the deal and the viewer's own cards as a sequence of (kind, seat, "
        "value), padded with zeros, for attention and recurrence."
    ),
    "pieces_v0": (
        "The fields of `flat_v0`, without the padding, as a Gymnasium `Dict` of arrays by the same "
        "names and shapes."
    ),
}
STATE = (
    "`state()` is the whole table, for critics that see all cards. It begins with player_0's "
    "`flat_v0`, so that seats are absolute."
)


def section(title: str, layout: Layout) -> str:
    """Return the part of the page on one layout."""
    shape = " × ".join(map(str, layout.shape))
    return f"### {title}: {shape}, values 0…{layout.high}\n\n{layout.table()}\n"


def page() -> str:
    """Return the page."""
    shapes: list[tuple[str, Rules]] = [
        ("Two players", make_rules("valety")),
        ("Three to seven players", make_rules("polignac")),
    ]
    parts = [INTRODUCTION]
    for name in ENCODERS:
        parts.append(f"## `{name}`\n\n{WORDS[name]}\n")
        if name != "pieces_v0":
            parts += [section(title, make_encoder(name, rules).layout) for title, rules in shapes]
    parts.append(f"## `state()`\n\n{STATE}\n")
    parts += [section(title, state_layout(rules)) for title, rules in shapes]
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
