from __future__ import annotations

from normeq.training.log import Log, draw_curve, read_table


def test_resuming_drops_the_rows_that_will_come_again(tmp_path):
    log = Log(tmp_path, 0, 10)
    for step in (2, 4, 6):
        log.step()
        log.training({"step": step, "loss": 1 / step, "samples_per_second": 3.0})
        log.validation({"step": step, "psnr": 20.0 + step, "psnr_25": 20.0 + step})
    log.close()
    # A kill can leave half a row behind.
    with (tmp_path / "training.csv").open("a") as file:
        file.write("8,0.1")
    resumed = Log(tmp_path, 4, 10)
    resumed.training({"step": 6, "loss": 0.5, "samples_per_second": 3.0})
    resumed.close()
    assert [(row["step"], row["loss"]) for row in read_table(tmp_path / "training.csv")] == [
        (2, 0.5),
        (4, 0.25),
        (6, 0.5),
    ]
    assert [row["step"] for row in read_table(tmp_path / "validation.csv")] == [2, 4]
    assert list((tmp_path / "tensorboard").iterdir())


def test_a_curve_can_be_drawn_before_the_first_validation(tmp_path):
    Log(tmp_path, 0, 10).close()
    assert len(draw_curve(tmp_path).axes) == 2


def test_levels_that_are_validated_from_now_on_get_columns_of_their_own(tmp_path):
    for step, level in ((2, "psnr_25"), (4, "psnr_50"), (6, "psnr_25")):
        log = Log(tmp_path, step - 2, 10)
        log.training({"step": step, "loss": 1.0, "samples_per_second": 3.0})
        log.validation({"step": step, "psnr": 20.0, level: 20.0})
        log.close()
    rows = read_table(tmp_path / "validation.csv")
    assert [set(row) - {"step", "psnr"} for row in rows] == [{"psnr_25"}, {"psnr_50"}, {"psnr_25"}]
    labels = [line.get_label() for line in draw_curve(tmp_path).axes[1].lines]
    assert labels == ["mean", "σ = 25", "σ = 50"]
