"""Layers that are made from another lie where it does and look the same, without a viewer."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("napari", minversion="0.6", reason="napari is not installed")


def test_a_part_lies_where_it_was_cut_out_whatever_the_transform() -> None:
    from napari.layers import Image

    from normeq.napari.new_layers import moved_state, role

    layer = Image(
        np.zeros((5, 30, 40)),
        scale=(2.0, 0.5, 0.25),
        translate=(1.0, 2.0, 3.0),
        rotate=[[1.0, 0.0, 0.0], [0.0, 0.8, -0.6], [0.0, 0.6, 0.8]],
        affine=np.diag((1.0, 3.0, 2.0, 1.0)),
        units=("um", "um", "um"),
        metadata={"made": "here"},
    )
    part = Image(np.zeros((1, 4, 4)), **moved_state(layer, (2, 10, 20), {"role": "preview"}))
    np.testing.assert_allclose(part.data_to_world((0, 0, 0)), layer.data_to_world((2, 10, 20)))
    np.testing.assert_allclose(part.data_to_world((0, 3, 1)), layer.data_to_world((2, 13, 21)))
    assert part.units == layer.units
    assert part.metadata["made"] == "here"
    assert (role(part), role(layer)) == ("preview", None)


def test_what_is_removed_from_colours_is_gray_where_nothing_is() -> None:
    from napari.layers import Image

    from normeq.napari.layer_run import LayerResult
    from normeq.napari.new_layers import covers, result_layers

    layer = Image(np.full((8, 9, 3), 100, np.uint8), rgb=True, name="photo")
    removed = np.zeros((8, 9, 3), np.float32)
    removed[0, 0] = -4
    result = LayerResult([np.asarray(layer.data)], ["noise: little"], removed, 4.0)
    clean, rest = result_layers(layer, result, {"model": "default"})
    assert clean.metadata["normeq"]["noise"] == ["noise: little"]
    assert rest.name == "photo removed (±4)"
    np.testing.assert_array_equal(rest.data[0, 0], 0.0)
    np.testing.assert_array_equal(rest.data[1, 1], 0.5)
    assert covers(layer)
    layer.blending = "additive"
    assert not covers(layer)
