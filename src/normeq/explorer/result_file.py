"""The denoised file for download, made in the background by the code of ``normeq denoise``."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Literal

from normeq.denoising.files import denoise_files
from normeq.denoising.outcome import Outcome
from normeq.denoising.paths import beside
from normeq.errors import Cancelled, NormeqError, UsageError, reason

#: What became of the file so far.
Stage = Literal["nothing", "running", "done", "failed", "cancelled"]


class ResultFile:
    """One result at a time, in a folder of its own that disappears with it.

    Parameters
    ----------
    path
        The image.
    options
        Given to `normeq.denoise_files` each time.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._path = path
        self._options = options
        self._lock = threading.Lock()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stage: Stage = "nothing"
        self._share = 0.0
        self._said = ""
        self._file: Path | None = None

    @property
    def name(self) -> str:
        """What the browser calls the file."""
        name = beside(Path(self._path.name)).name
        return f"{name}.zip" if self.file().suffix == ".zip" else name

    def status(self) -> dict[str, Any]:
        """Return the stage, the share that is done, and a sentence about it."""
        with self._lock:
            return {"stage": self._stage, "share": self._share, "said": self._said}

    def file(self) -> Path:
        """Return the finished file."""
        with self._lock:
            if self._stage != "done" or self._file is None:
                raise UsageError("there is no finished result: start one first.")
            return self._file

    def start(self, **options: Any) -> None:
        """Begin to denoise the file, in place of any other result.

        Parameters
        ----------
        options
            Model and noise, as in `normeq.denoise_files`.
        """
        with self._lock:
            if self._stage == "running":
                raise UsageError(
                    "a result is being computed: cancel it, or wait until it is finished."
                )
            self._stage, self._share, self._said, self._file = "running", 0.0, "", None
            self._cancel.clear()
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="normeq-explore-")
            run = threading.Thread(target=self._run, args=(self._folder.name, options), daemon=True)
            self._thread = run
        run.start()

    def cancel(self) -> None:
        """Stop what is running."""
        self._cancel.set()

    def close(self) -> None:
        """Stop, and remove what was written."""
        self.cancel()
        if self._thread is not None:
            self._thread.join(timeout=5)
        if self._folder is not None:
            self._folder.cleanup()

    def _run(self, folder: str, options: dict[str, Any]) -> None:
        try:
            [outcome] = denoise_files(
                self._path,
                folder,
                existing="overwrite",
                progress=self._progress,
                cancel=self._cancel,
                **self._options,
                **options,
            )
            self._finish(outcome)
        except Cancelled:
            self._end("cancelled", "cancelled; nothing was written.")
        except NormeqError as error:
            self._end("failed", str(error))
        except Exception as error:  # whatever it is, the page has to say it
            self._end("failed", f"{type(error).__name__}: {reason(error)}")

    def _progress(self, share: float) -> None:
        with self._lock:
            self._share = share

    def _finish(self, outcome: Outcome) -> None:
        if outcome.error:
            self._end("failed", outcome.error)
            return
        target = Path(outcome.output)
        if target.is_dir():  # a Zarr store
            target = Path(shutil.make_archive(str(target), "zip", target.parent, target.name))
        with self._lock:
            self._file = target
        clipped = f"; {outcome.clipped} pixels clipped" if outcome.clipped else ""
        self._end("done", f"{outcome.planes} planes in {outcome.seconds:.1f} s{clipped}.")

    def _end(self, stage: Stage, said: str) -> None:
        with self._lock:
            self._stage, self._said, self._share = stage, said, 1.0
