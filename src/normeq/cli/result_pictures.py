"""The pictures that ``normeq denoise`` writes beside a result: previews and quality reports."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from normeq.errors import NormeqError

if TYPE_CHECKING:
    from normeq.denoising.file_options import FileOptions
    from normeq.denoising.outcome import Outcome
    from normeq.denoising.preparation import Choice


def with_preview(outcome: Outcome, axes: str | None) -> Outcome:
    """Write the preview of a result that is done."""
    from normeq.denoising.paths import preview_path
    from normeq.denoising.preview import write_preview

    if outcome.status != "done":
        return outcome
    target = Path(outcome.output)
    outcome.preview = str(preview_path(target))
    try:
        write_preview(Path(outcome.input), target, Path(outcome.preview), axes)
    except NormeqError as error:
        outcome.status, outcome.error = "failed", f"{outcome.input}: no preview: {error}"
    return outcome


def with_report(
    outcome: Outcome, choice: Choice, options: FileOptions, probes: int | None
) -> Outcome:
    """Judge a result that is done, and draw a picture of that."""
    from normeq._support.tables import save_figure
    from normeq.adaptation.assessment import PROBES, assess_file
    from normeq.adaptation.quality_figure import quality_figure
    from normeq.denoising.paths import report_path

    if outcome.status != "done":
        return outcome
    path = Path(outcome.input)
    try:
        found = assess_file(path, choice, options, PROBES if probes is None else probes)
        outcome.quality = found.report.to_dict()
        outcome.quality_found = [*found.report.lines(), *found.report.table().splitlines()]
        outcome.report = str(report_path(Path(outcome.output)))
        save_figure(Path(outcome.report), partial(quality_figure, found, path.name))
    except NormeqError as error:
        outcome.status, outcome.error = "failed", f"{outcome.input}: no report: {error}"
    return outcome
