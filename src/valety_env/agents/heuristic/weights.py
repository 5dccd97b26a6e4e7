"""What the heuristic's features weigh: made by tools/fit_heuristic.py."""

from __future__ import annotations

import numpy as np

from valety_env.rules import SCORING_PENALTIES, SCORING_TRICKS

# What the answers weigh, a row each in the order of FEATURES. The columns are situations: a
# plain card led, following suit, thrown off; then a trump led, following, ruffing. Units are points
# of one deal; only the differences between the cards of one hand mean anything.
LEAD, FOLLOW, DISCARD = range(3)
IF_TRUMP = 3
TRICKS_WEIGHTS = np.array(
    [
        [0.364, 0.566, 0.000, -0.102, 0.452, 0.581],  # wins if others duck
        [0.059, 0.903, 0.000, 0.487, 1.030, 0.619],  # wins if they beat
        [0.000, -1.786, 0.000, 0.000, -1.926, -1.725],  # jacks on the table, won
        [-1.399, -1.811, 0.000, -0.444, -1.867, -1.494],  # own jack, won
        [-0.085, -0.157, 0.000, -0.265, -0.826, -0.273],  # jacks thrown on it, won
        [-0.222, -0.391, 0.000, -0.713, -0.548, 0.000],  # jack ducked under it, won, × length
        [0.063, 0.022, 0.000, -0.056, -0.062, -0.108],  # wins × own other jacks
        [0.102, 0.390, 0.235, -0.640, -0.189, 0.063],  # a winner later
        [0.397, -0.758, -0.630, 0.956, -0.308, -0.222],  # the same, early
        [-0.831, -1.125, -0.549, -0.263, -1.127, -0.984],  # share of the suit below
        [0.226, 0.150, 0.131, 0.166, 0.191, 0.216],  # the same × length
        [-0.031, 0.019, -0.037, -0.003, -0.030, -0.044],  # outside cards it beats × length
        [0.026, 0.202, 0.097, 0.034, -0.074, -0.051],  # outside cards above
        [0.135, 0.000, 0.030, 0.341, 0.000, 0.179],  # last of its suit
        [0.060, -0.465, 0.165, -0.321, -1.484, 0.407],  # over an outside jack
        [0.073, 0.079, 0.028, 0.506, 0.204, -0.047],  # the same × length
        [0.233, -1.205, -0.477, -0.251, -3.498, -0.180],  # under an outside jack ÷ low cards
        [-0.151, -0.145, -0.026, -0.255, -0.016, -0.059],  # above own jack
        [-0.108, -0.304, -0.139, -0.477, -0.103, -0.077],  # guards own jack
        [-0.900, -0.182, 0.128, -0.478, -0.089, -0.124],  # the same × share below
        [1.809, 1.541, 0.847, -0.225, -1.012, -0.692],  # is a jack
        [-0.378, -0.333, -0.104, 0.113, 0.220, 0.120],  # the same × length
        [0.021, -0.060, 0.042, 0.483, 0.514, 0.200],  # own jack ÷ low cards
        [0.089, 0.146, 0.089, -0.006, 0.012, -0.022],  # own jack × cards it beats
        [0.138, 0.228, 0.129, 0.027, 1.638, 1.480],  # own jack × share below
    ]
).T.copy()
PENALTIES_WEIGHTS = np.array(
    [
        [0.146, 0.013, 0.000, 0.035, 0.113, 0.175],  # wins if others duck
        [-0.296, -0.176, 0.000, -0.312, -0.161, -0.220],  # wins if they beat
        [0.000, -1.315, 0.000, 0.000, -1.355, -1.171],  # jacks on the table, won
        [-0.551, -1.211, 0.000, -0.090, -1.416, -1.531],  # own jack, won
        [-0.472, -0.818, 0.000, -0.239, -0.717, -0.452],  # jacks thrown on it, won
        [-0.316, -0.612, 0.000, -0.143, -0.716, 0.000],  # jack ducked under it, won, × length
        [0.008, -0.049, 0.000, -0.006, -0.103, -0.088],  # wins × own other jacks
        [-0.400, -0.224, -0.164, -0.206, -0.054, 0.253],  # a winner later
        [0.549, 0.388, 0.380, 0.366, 0.116, -0.150],  # the same, early
        [-0.152, 0.856, 0.285, -0.116, 0.569, -0.111],  # share of the suit below
        [-0.075, -0.257, -0.052, -0.120, -0.119, 0.125],  # the same × length
        [0.011, 0.084, 0.005, 0.010, 0.073, -0.011],  # outside cards it beats × length
        [-0.029, 0.124, 0.017, -0.029, 0.133, -0.006],  # outside cards above
        [0.139, 0.000, 0.230, 0.155, 0.000, 0.277],  # last of its suit
        [-0.216, -2.516, 0.395, -0.172, -1.986, 0.703],  # over an outside jack
        [0.114, 0.350, -0.110, -0.030, 0.185, -0.197],  # the same × length
        [-0.077, -4.498, -0.401, -0.356, -4.471, -0.635],  # under an outside jack ÷ low cards
        [-0.162, 0.080, -0.061, -0.317, -0.117, -0.145],  # above own jack
        [-0.487, 0.102, -0.251, -1.259, -0.128, -0.267],  # guards own jack
        [0.367, 0.430, 0.132, 0.932, -0.135, -0.048],  # the same × share below
        [0.037, 0.099, 0.065, -0.365, -0.340, -0.381],  # is a jack
        [-0.022, -0.034, -0.049, 0.157, 0.149, 0.092],  # the same × length
        [0.265, 0.108, 0.080, 0.260, 0.178, 0.524],  # own jack ÷ low cards
        [-0.006, 0.070, 0.048, -0.102, -0.020, -0.091],  # own jack × cards it beats
        [-0.227, 0.427, 0.073, 0.099, 0.999, 1.187],  # own jack × share below
    ]
).T.copy()

# By what `Rules.scoring` is in a record.
WEIGHTS = np.zeros((2, *TRICKS_WEIGHTS.shape))
WEIGHTS[SCORING_TRICKS] = TRICKS_WEIGHTS
WEIGHTS[SCORING_PENALTIES] = PENALTIES_WEIGHTS
