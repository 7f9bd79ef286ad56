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
    assert draw_curve(tmp_path).read_bytes().startswith(b"\x89PNG")
