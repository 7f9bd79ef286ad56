"""The page of an image, served to the browser on this machine."""

from __future__ import annotations

import secrets
import socket
from types import TracebackType
from typing import Self

import uvicorn

from normeq.errors import UsageError, reason
from normeq.explorer.exploration import Exploration
from normeq.explorer.local_app import make_app
from normeq.explorer.result_file import ResultFile
from normeq.images import ImageFile
from normeq.images.bayer import Bayer

# How long requests may still run after the end, in seconds.
_LAST_WORDS = 1


class PageServer:
    """Serves the page of an image on the loopback interface, at an address with a token in it.

    It listens from the start, so a browser may be sent to the address before `run` answers.

    Parameters
    ----------
    image
        The opened image.
    model, value_range, device, bayer, axes, part
        See `normeq.denoise_files`.
    port
        Where to listen; 0 takes a port that is free.
    """

    def __init__(
        self,
        image: ImageFile,
        *,
        model: str = "default",
        value_range: tuple[float, float] | None = None,
        device: str = "auto",
        bayer: Bayer | None = None,
        axes: str | None = None,
        part: str | None = None,
        port: int = 0,
    ) -> None:
        self._listener = _listening(port)
        port = self._listener.getsockname()[1]
        token = secrets.token_urlsafe(18)
        self.address = f"http://127.0.0.1:{port}/{token}/"
        self._exploration = Exploration(
            image, model, value_range=value_range, device=device, bayer=bayer
        )
        self._result = ResultFile(
            image.path, axes=axes, part=part, bayer=bayer, device=device, nan="keep"
        )
        config = uvicorn.Config(
            make_app(self._exploration, self._result, image.path.name, port, token),
            log_level="critical",  # what goes wrong is said on the page
            timeout_graceful_shutdown=_LAST_WORDS,
            server_header=False,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Answer requests until `stop` is called, or a signal comes, which is then raised."""
        self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exploration.stop()
        self._result.close()
        self._listener.close()


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise UsageError(
            f"cannot listen on port {port} ({reason(error)}): leave out --port to use a free one."
        ) from error
