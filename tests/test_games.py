"""Games and their options written as one line of text: what `--game` takes."""

import pytest

from valety_env.rules import PRESETS, Rules, make_rules, parse_game


@pytest.mark.plain
@pytest.mark.parametrize("game", PRESETS)
def test_the_name_of_a_game_gives_its_rules(game: str) -> None:
    assert parse_game(game) == (game, make_rules(game))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("text", "game", "options"),
    [
        (
            "polignac,num_players=5,general=false",
            "polignac",
            {"num_players": 5, "general": False},
        ),
        ("polignac , num_players = 6 , general = True", "polignac", {"num_players": 6}),
        ("valety,trump=none,hand_size=26", "valety", {"trump": "none", "hand_size": 26}),
        ("valety,jack_penalties=4+3+2+1", "valety", {"jack_penalties": (4, 3, 2, 1)}),
        ("valety,num_deals=3", "valety", {"num_deals": 3}),
        (
            "valety,first_lead=left_of_dealer,tie=draw",
            "valety",
            {"first_lead": "left_of_dealer", "tie": "draw"},
        ),
        (
            "valety,pack=JS+QS+KS+JH+QH+KH,hand_size=2",
            "valety",
            {"pack": "JS QS KS JH QH KH", "hand_size": 2},
        ),
        (
            "polignac,rank_order=23456789TAJQK",
            "polignac",
            {"rank_order": "23456789TAJQK"},
        ),
    ],
)
def test_options_of_a_game_are_read_by_their_type(
    text: str, game: str, options: dict[str, object]
) -> None:
    assert parse_game(text) == (game, make_rules(game, **options))


@pytest.mark.plain
def test_none_takes_a_limit_away_and_is_a_kind_of_trump() -> None:
    assert parse_game("valety-L1,max_deals=none")[1].max_deals is None
    assert parse_game("valety,target=none,num_deals=3")[1] == make_rules("valety", num_deals=3)
    assert parse_game("polignac,hand_size=none")[1] == make_rules("polignac")
    assert parse_game("polignac,trump=none")[1] == make_rules("polignac")
    assert isinstance(parse_game("valety")[1], Rules)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bridge", ["'bridge' is not a game", "valety", "valety-L8"]),
        ("", ["is not a game", "polignac-classic"]),
        ("valety,target", ["'target' is not OPTION=VALUE", "num_players"]),
        ("valety,target=", ["'target=' is not OPTION=VALUE"]),
        ("valety,", ["'' is not OPTION=VALUE"]),
        ("valety,players=2", ["'players' is not a rule option", "num_players"]),
        ("valety,target=9,target=8", ["target is given twice"]),
        ("valety,target=many", ["target=many", "a whole number or none"]),
        ("valety,num_players=none", ["num_players=none", "a whole number"]),
        ("polignac,general=1", ["general=1", "true and false"]),
        ("valety,jack_penalties=1+x", ["jack_penalties=1+x", "four whole numbers"]),
        ("valety,jack_penalties=1+2", ["jack_penalties", "four whole numbers"]),
        ("valety,trump=hearts", ["trump='hearts'", "'turned'"]),
        ("valety,pack=JS+XX,hand_size=1", ["pack", "XX"]),
        ("valety,target=none", ["target", "num_deals", "loss_limit"]),
        ("valety,general=true", ["general", "scoring"]),
    ],
)
def test_a_wrong_game_is_one_line_that_says_what_is_allowed(text: str, said: list[str]) -> None:
    with pytest.raises(ValueError) as caught:
        parse_game(text)
    message = str(caught.value)
    assert "\n" not in message
    assert repr(text) in message
    for part in said:
        assert part in message
