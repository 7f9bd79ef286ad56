"""A copy of a network whose layers and forward passes are exchanged for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from normeq.certification.examples import trouble
from normeq.certification.questions import variations
from normeq.certification.subject import unchanged
from normeq.conversion.changes import Change
from normeq.conversion.forward_pass import (
    Call,
    ForwardPass,
    open_forward_pass,
    size_of_features,
)
from normeq.conversion.operations import class_name, norms_in_training
from normeq.nn.copies import bake_hooked_norms, fresh, private_copy

#: Layers whose parts are not called as modules: converted whole, or not at all.
ATOMIC_LAYERS = (
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
    nn.TransformerEncoder,
    nn.TransformerDecoder,
    nn.Transformer,
    nn.RNNBase,
)


class NetworkEditor:
    """A copy of a network that is being converted, and the changes made to it so far.

    Layers are exchanged with `replace`, operations on the graphs in `forward_passes`, and
    `finish` puts changed graphs in the place of the forward passes they came from.

    Parameters
    ----------
    module
        The network, which is left as it is.
    args
        What it is called with, once, to learn what every module in it is called with.
    """

    def __init__(self, module: nn.Module, args: Sequence[Any]) -> None:
        self.root = private_copy(module)
        self.changes = [
            Change(path, "weight norm by a hook", "its present weights")
            for path in bake_hooked_norms(self.root)
        ]
        fixed = fixed_arguments(self.root, args)
        with in_use(self.root, rehearsed_norms(self.root, args)):
            calls = _observe_calls(self.root, args)
            self._usual_sizes = {
                path: size_of_features(calls[module])
                for path, module in self.root.named_modules()
                if module in calls
            }
            self.forward_passes = self._open_forward_passes(calls, fixed)

    def layers(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield every module with its path; changes while walking over them do no harm."""
        inside = tuple(
            f"{path}." if path else ""
            for path, module in self.root.named_modules()
            if isinstance(module, ATOMIC_LAYERS)
        )
        for path, module in list(self.root.named_modules()):
            if not path.startswith(inside) or not path:
                yield path, module

    def usual_size(self, path: str) -> float:
        """Return the root mean square of what entered a module when the network was called."""
        return self._usual_sizes.get(path, 1.0)

    def replace(self, path: str, old: nn.Module, new: nn.Module, now: str = "") -> None:
        """Put another layer in the place of one wherever it is used, and record it."""
        self.note(path, class_name(old), now or class_name(new))
        self._put(old, new)

    def wrap(self, wrapper: nn.Module) -> None:
        """Put a network around the whole."""
        self.note("", type(self.root).__name__, f"inside {type(wrapper).__name__}")
        wrapper.training = self.root.training
        self.root = wrapper

    def note(self, path: str, was: str, now: str) -> None:
        """Record a change made within a layer."""
        self.changes.append(Change(path, was, now))

    def finish(self) -> None:
        """Put the forward passes that were changed in the place of the original ones."""
        for forward in self.forward_passes:
            if forward.changes or forward.is_rewritten:
                self._put(forward.owner, forward.finished())
                self.changes += forward.changes
        self.forward_passes = []

    def open_own_forward(self, args: Sequence[Any]) -> ForwardPass | None:
        """Open the forward pass of the network itself again, after all have been finished."""
        fixed = fixed_arguments(self.root, args).get("", [])
        with in_use(self.root):
            call = _observe_calls(self.root, args)[self.root]
            forward = open_forward_pass("", self.root, call, fixed, is_root=True)
        self.forward_passes = [] if forward is None else [forward]
        return forward

    def _put(self, old: nn.Module, new: nn.Module) -> None:
        """Exchange a module; what is new in it takes the mode of the old one."""
        kept = set(old.modules())
        for layer in new.modules():
            if layer not in kept:
                layer.training = old.training
        if old is self.root:
            self.root = new
            return
        for parent in list(self.root.modules()):
            for name, child in parent._modules.items():
                if child is old:
                    parent._modules[name] = new

    def _open_forward_passes(
        self, calls: dict[nn.Module, Call], fixed: dict[str, list[int | str]]
    ) -> list[ForwardPass]:
        opened = [
            open_forward_pass(
                path, module, calls[module], fixed.get(path, []), is_root=module is self.root
            )
            for path, module in self.layers()
            if module in calls and not _is_layer(module)
        ]
        return [forward for forward in opened if forward is not None]


def _is_layer(module: nn.Module) -> bool:
    """Whether a module is a layer rather than a network written in Python."""
    home = type(module).__module__
    layer = home.startswith(("torch.nn.", "normeq.nn.")) or hasattr(module, "parametrizations")
    return layer and not isinstance(module, nn.Sequential)


@contextmanager
def in_use(root: nn.Module, trained: Sequence[str] = ()) -> Iterator[None]:
    """Put a network in eval mode, except for some of its norms; undo that, and what they learn."""
    modes = {module: module.training for module in root.modules()}
    root.eval()
    for path in trained:
        root.get_submodule(path).train()
    try:
        with unchanged(root):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def rehearsed_norms(root: nn.Module, args: Sequence[Any]) -> list[str]:
    """Return the norms that train, unless the example is too small: none trains on one value.

    They decide what size features have in a network that is still to be trained.
    """
    trained = norms_in_training(root)
    with in_use(root, trained):
        return trained if trained and trouble(root, args) is None else []


def _observe_calls(root: nn.Module, args: Sequence[Any]) -> dict[nn.Module, Call]:
    """Run a network once; return what each module was first called with."""
    seen: dict[nn.Module, Call] = {}

    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.setdefault(module, (args, kwargs))

    handles = [
        module.register_forward_pre_hook(hook, with_kwargs=True) for module in root.modules()
    ]
    with torch.no_grad():
        root(*fresh(args))
    for handle in handles:
        handle.remove()
    return seen


def fixed_arguments(root: nn.Module, args: Sequence[Any]) -> dict[str, list[int | str]]:
    """Return, by the path of each module, the arguments that no gain and no offset changes."""
    variation = variations(args, None, "equivariant")[0]
    with in_use(root):
        before, after = (
            _observe_calls(root, given) for given in (args, variation.applied(args, 2.0, 1.0))
        )
    return {
        path: _unchanged(before[module], after[module])
        for path, module in root.named_modules()
        if module in before and module in after
    }


def _unchanged(before: Call, after: Call) -> list[int | str]:
    """Return the positions and names of arguments that are the same in two calls."""
    first, second = ({**dict(enumerate(given)), **named} for given, named in (before, after))
    return [
        name
        for name, value in first.items()
        if name in second
        and all(
            torch.equal(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else a is b
            for a, b in zip(tree_leaves(value), tree_leaves(second[name]), strict=False)
        )
    ]
