"""Windows and arrays of pixels, by pygame."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from valety_env.render.picture import SIZE, Painter, import_pygame
from valety_env.render.scenes import Scene

if TYPE_CHECKING:
    from numpy.typing import NDArray

# All windows get their events through one queue: whoever empties it tells the others.
_open: weakref.WeakSet[Window] = weakref.WeakSet()


class Window:
    """Shows scenes in a window of its own, or gives their pixels without any window.

    Copies, also through pickle, are new windows that are not open.

    Args:
        fps: pictures a second that `show` never exceeds; it waits when called earlier.

    Raises:
        ImportError: if pygame is not installed.
        ValueError: if `fps` is not above 0.
    """

    def __init__(self, fps: float = 4.0) -> None:
        if not fps > 0:
            raise ValueError(f"fps={fps}: it must be above 0")
        self.fps = fps
        self._pygame = import_pygame()
        self._painter = Painter()
        self._window: Any = None
        self._closed_by_user = False
        self._clock = self._pygame.time.Clock()

    def __reduce__(self) -> tuple[type[Window], tuple[float]]:
        return Window, (self.fps,)

    def rgb_array(self, scene: Scene) -> NDArray[np.uint8]:
        """Return the picture of a scene: uint8 (640, 960, 3), a new array; opens no display."""
        pixels = self._pygame.surfarray.array3d(self._painter.paint(scene))
        return np.ascontiguousarray(pixels.swapaxes(0, 1), dtype=np.uint8)

    def show(self, scene: Scene) -> bool:
        """Show a scene in the window, opened by the first call.

        Returns:
            whether the window is open. Once the user has closed it, it stays closed and nothing is
            drawn, until `close`.

        Raises:
            ImportError: if the installed pygame cannot open several windows.
        """
        pg = self._pygame
        self._heed_events()
        if self._closed_by_user:
            return False
        picture = self._painter.paint(scene)
        try:
            self._draw(picture)
        except pg.error:
            # pygame.quit() by someone else has destroyed the window: open it anew.
            self._window = None
            self._draw(picture)
        self._clock.tick(self.fps)
        self._heed_events()
        return not self._closed_by_user

    def close(self) -> None:
        """Close the window, no other one; a later `show` opens a new one."""
        self._closed_by_user = False
        self._destroy()

    @property
    def is_open(self) -> bool:
        """Whether the window is on the screen."""
        return self._window is not None

    def _draw(self, picture: Any) -> None:
        pg = self._pygame
        if self._window is None:
            if not hasattr(pg, "Window"):
                raise ImportError(
                    "windows need pygame-ce >= 2.5, another pygame is installed: "
                    "pip install 'valety-env[render]'"
                )
            pg.display.init()
            self._window = pg.Window("valety_env", SIZE)
            _open.add(self)
        self._window.get_surface().blit(picture, (0, 0))
        self._window.flip()

    def _heed_events(self) -> None:
        """Empty the queue of events and close the windows that the user closed.

        The system takes a window whose events nobody fetches for hung.
        """
        pg = self._pygame
        if not pg.display.get_init():
            return
        for event in pg.event.get():
            if event.type not in (pg.QUIT, pg.WINDOWCLOSE):
                continue
            for window in list(_open):
                # QUIT means the whole program; pygame sends it too when the last window is closed.
                if event.type == pg.QUIT or event.window is window._window:
                    window._closed_by_user = True
                    window._destroy()

    def _destroy(self) -> None:
        _open.discard(self)
        if self._window is not None:
            if self._pygame.display.get_init():
                self._window.destroy()
            self._window = None
