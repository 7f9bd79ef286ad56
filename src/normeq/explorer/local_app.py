"""The requests of the page, and what answers them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from normeq.denoising.preparation import Choice
from normeq.errors import NormeqError, UsageError, reason
from normeq.explanation import cut_out, shown_square
from normeq.explorer.exploration import Exploration, Setting, noise_options_for
from normeq.explorer.guard import LocalGuard
from normeq.explorer.offered_models import ORDINARY
from normeq.explorer.pyramid import TILE, TilePlace, grid, top_level
from normeq.explorer.queries import Query
from normeq.explorer.result_file import ResultFile
from normeq.explorer.unit_change import measure_unit_change

log = logging.getLogger(__name__)

PAGE = Path(__file__).parent / "page"

#: The least and the largest gain of the page, and its largest offset in widths of the range shown.
GAINS = (1e-3, 1e3)
OFFSET = 1e3

Answer = Callable[[Request], Response]


def make_app(
    exploration: Exploration, result: ResultFile, title: str, port: int, token: str
) -> LocalGuard:
    """Return what answers the requests of one page about one image.

    Parameters
    ----------
    exploration, result
        What computes the answers.
    title
        What the image is called.
    port, token
        See `normeq.explorer.guard.LocalGuard`.
    """
    answers = _Answers(exploration, result, title)
    routes = [
        Route("/about", _said(answers.about)),
        Route("/frame", _said(answers.frame)),
        Route("/noise", _said(answers.noise)),
        Route("/tile", _said(answers.tile)),
        Route("/filter", _said(answers.filter)),
        Route("/units", _said(answers.units)),
        Route("/result", _said(answers.start_result), methods=["POST"]),
        Route("/result", _said(answers.cancel_result), methods=["DELETE"]),
        Route("/result", _said(answers.result_status)),
        Route("/result/file", _said(answers.result_file)),
        Mount("/", StaticFiles(directory=PAGE, html=True)),
    ]

    to_page = Route(f"/{token}", lambda request: RedirectResponse(f"/{token}/"))
    app = Starlette(routes=[to_page, Mount(f"/{token}", routes=routes)])
    return LocalGuard(app, port, token)


def _said(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """Turn what an answer raises into a sentence and a status: 400 the request, 422 the image."""

    def said(request: Request) -> Response:
        try:
            return answer(request)
        except NormeqError as error:
            status = 400 if isinstance(error, UsageError) else 422
            return JSONResponse({"error": str(error)}, status)
        except Exception as error:  # the page has to say it, whatever it is
            log.debug("unexpected", exc_info=error)
            return JSONResponse({"error": f"{type(error).__name__}: {reason(error)}"}, 500)

    async def answered(request: Request) -> Response:
        return await _in_a_thread(said, request)

    return answered


async def _in_a_thread(answer: Answer, request: Request) -> Response:
    """Let a thread answer that does not keep the process alive: a slow method may take minutes."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Response] = loop.create_future()

    def give(response: Response) -> None:
        if not found.done():  # nobody waits any more
            found.set_result(response)

    def run() -> None:
        response = answer(request)
        with suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(give, response)

    threading.Thread(target=run, daemon=True).start()
    return await found


class _Answers:
    """An answer for each kind of request."""

    def __init__(self, exploration: Exploration, result: ResultFile, title: str) -> None:
        self._exploration = exploration
        self._result = result
        self._title = title

    # What a request asks about ---------------------------------------------------------------

    def _frame(self, query: Query) -> int:
        return query.integer("frame", self._exploration.image.frames - 1)

    def _setting(self, query: Query) -> Setting:
        exploration = self._exploration
        low, high = exploration.shown_range(0)
        gain = query.number("gain", *GAINS, 1.0)
        most = gain * OFFSET * (high - low)
        models = exploration.models
        return Setting(
            query.choice("model", models, next(iter(models))),
            query.optional("sigma", 0.0, 1e300),
            gain,
            query.number("offset", -most, most, 0.0),
        )

    def _pixel(self, query: Query) -> tuple[int, int]:
        image = self._exploration.image
        return query.integer("row", image.height - 1), query.integer("column", image.width - 1)

    def _place(self, query: Query) -> TilePlace:
        size = (self._exploration.image.height, self._exploration.image.width)
        level = query.integer("level", top_level(*size))
        rows, columns = grid(*size, level)
        row, column = query.integer("row", rows - 1), query.integer("column", columns - 1)
        return TilePlace(self._frame(query), level, row, column)

    # Answers ---------------------------------------------------------------------------------

    def about(self, request: Request) -> Response:
        """Say what the image is, and which models there are."""
        exploration = self._exploration
        image, models = exploration.image, exploration.models
        return JSONResponse(
            {
                "title": self._title,
                "height": image.height,
                "width": image.width,
                "channels": exploration.channels,
                "axes": list(zip(image.leading_axes, image.leading, strict=True)),
                "kind": str(exploration.stored_dtype),
                "tile": TILE,
                "top_level": top_level(image.height, image.width),
                "range": exploration.shown_range(0),
                "gains": GAINS,
                "offset": OFFSET,
                "models": [{"name": each.name, "label": each.label} for each in models.values()],
                "model": next(iter(models)),
                "ordinary": ORDINARY,
                "ordinary_range": models[ORDINARY].value_range,
            }
        )

    def frame(self, request: Request) -> Response:
        """Say which values of a frame are drawn black and white."""
        frame = self._frame(Query(request.query_params))
        return JSONResponse({"range": self._exploration.shown_range(frame)})

    def noise(self, request: Request) -> Response:
        """Say what is assumed of the noise, and what denoises."""
        setting = self._setting(Query(request.query_params))
        return JSONResponse(
            {
                "lines": self._exploration.noise_found(setting),
                "denoiser": self._exploration.denoiser_name(setting),
            }
        )

    def tile(self, request: Request) -> Response:
        """Return the pixels of a tile, as numbers of single precision."""
        query = Query(request.query_params)
        place = self._place(query)
        if query.choice("of", ("input", "twin"), "input") == "input":
            pixels = self._exploration.input_tile(place)
        else:
            pixels = self._exploration.denoised_tile(self._setting(query), place)
        rows, columns, channels = pixels.shape
        headers = {"X-Shape": f"{rows},{columns},{channels}"}
        body = np.ascontiguousarray(pixels, dtype="<f4").tobytes()
        return Response(body, headers=headers, media_type="application/octet-stream")

    def filter(self, request: Request) -> Response:
        """Return the adaptive filter of a pixel, as far as it is worth showing."""
        query = Query(request.query_params)
        channel = query.integer("channel", self._exploration.channels - 1)
        found = self._exploration.adaptive_filter(
            self._setting(query), self._frame(query), self._pixel(query), channel
        )
        rows, columns = square = shown_square(found)
        weights = cut_out(found.weights, found, square)
        weights = weights.sum(0) if weights.ndim == 3 else weights
        return JSONResponse(
            {
                "row": found.at[0],
                "column": found.at[1],
                "value": found.value,
                "sum": found.sum,
                "effective_pixels": min(found.effective_pixels, 1e300),
                "rows": [rows.start, rows.stop],
                "columns": [columns.start, columns.stop],
                "weights": [float(f"{weight:.4g}") for weight in weights.ravel()],
            }
        )

    def units(self, request: Request) -> Response:
        """Measure whether the twin follows a change of units."""
        query = Query(request.query_params)
        change = measure_unit_change(
            self._exploration, self._setting(query), self._frame(query), self._pixel(query)
        )
        return JSONResponse(change.as_dict())

    def start_result(self, request: Request) -> Response:
        """Begin to denoise the file."""
        setting = self._setting(Query(request.query_params))
        offered = self._exploration.models[setting.model]
        noise = noise_options_for(
            Choice(offered.model, value_range=offered.value_range), setting.sigma
        )
        self._result.start(model=offered.model, value_range=offered.value_range, sigma=noise.sigma)
        return JSONResponse(self._result.status(), 202)

    def cancel_result(self, request: Request) -> Response:
        """Stop denoising the file."""
        self._result.cancel()
        return JSONResponse(self._result.status())

    def result_status(self, request: Request) -> Response:
        """Say how far the file is."""
        return JSONResponse(self._result.status())

    def result_file(self, request: Request) -> Response:
        """Return the denoised file."""
        return FileResponse(self._result.file(), filename=self._result.name)
