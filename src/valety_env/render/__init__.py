"""Pictures of a table: `scene` gathers what is seen, `ansi` writes it, `Window` paints it.

pygame is imported only when a `Window` is made.
"""

from valety_env.render.scenes import Scene, SeatScene, TrickScene, scene
from valety_env.render.text import ansi
from valety_env.render.window import Window

__all__ = ["Scene", "SeatScene", "TrickScene", "Window", "ansi", "scene"]
