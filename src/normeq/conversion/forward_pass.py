"""The forward pass of one module, its children opaque, as a graph that can be edited.

Every module's own forward pass is traced by itself. So only modules whose own operations must
change become graph modules, names stay as they are, and a forward pass that cannot be traced stays
what it is while its children are still converted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, fx, nn
from torch.utils._pytree import tree_leaves

from normeq.conversion.changes import Change
from normeq.conversion.operations import (
    DROPOUTS,
    INPUT_FIRST,
    called_name,
    works_in_place,
)
from normeq.nn.enclosed import Enclosed, FunctionLayer
from normeq.nn.fast.graph import GraphEditor, trace

#: The arguments that a module was called with.
Call = tuple[tuple[Any, ...], dict[str, Any]]


class ForwardPass(GraphEditor):
    """A forward pass as a graph of calls to children and of operations, and the changes to it."""

    def __init__(
        self,
        path: str,
        owner: nn.Module,
        graph: fx.Graph,
        call: Call,
        fixed: Sequence[int | str],
    ) -> None:
        super().__init__(owner, graph)
        self.path = path
        self.changes: list[Change] = []
        #: Of sums that became affine residuals, what their proportions added up to.
        self.totals: dict[Any, float] = {}
        self._called_before = self._children()
        self._features = _features(owner, graph, call, fixed)
        # An in-place change must be written out even if nothing else is converted.
        self.is_rewritten = self._follow_changes_in_place()

    def is_feature(self, value: Any) -> bool:
        """Whether an argument is a tensor that depends on the input."""
        return value in self._features

    def usual_size(self, value: Any) -> float:
        """Return the root mean square of a feature when the network was called."""
        return self._features.get(value, 1.0)

    def calls(self, node: Any, targets: Sequence[Any]) -> bool:
        """Whether a value comes from a call of one of these functions or methods."""
        is_call = isinstance(node, fx.Node) and node.op in ("call_function", "call_method")
        return is_call and node.target in targets

    def call_layer(self, node: fx.Node, layer: nn.Module, args: Sequence[Any], now: str) -> None:
        """Exchange an operation for a new layer, and record it."""
        self._record(node, now)
        layer.training = self.owner.training
        self.use_layer(node, layer, args)

    def enclose(self, node: fx.Node, *, offset: bool) -> None:
        """Let a call see ratios; arguments that do not depend on the image stay as they are."""
        given: dict[Any, Any] = {**dict(enumerate(node.args)), **node.kwargs}
        features = [value for value in given.values() if self.is_feature(value)]
        fixed = [name for name, value in given.items() if not self.is_feature(value)]
        function = FunctionLayer(node.target)
        layer = Enclosed(function, self.usual_size(features[0]), fixed=fixed, offset=offset)
        self._record(node, f"{called_name(node)}() of ratios")
        layer.train(self.owner.training)
        self.use_layer(node, layer)

    def call_function(
        self,
        node: fx.Node,
        function: Callable[..., Any],
        args: Sequence[Any],
        now: str,
        **options: Any,
    ) -> None:
        """Exchange an operation for another function, and record it."""
        self._record(node, now)
        self.use_function(node, function, args, **options)

    def leave_out(self, node: fx.Node, instead: fx.Node) -> None:
        """Leave an operation out, and record it."""
        self._record(node, "none")
        self.drop(node, instead)

    def finished(self) -> fx.GraphModule:
        """Return a module with the changed forward pass, and everything else that the owner has."""
        for node in self.nodes:
            if self.calls(node, tuple(DROPOUTS)):  # as a layer it knows the mode
                chance = node.args[1] if len(node.args) > 1 else node.kwargs.get("p", 0.5)
                layer = DROPOUTS[node.target](chance)
                self.call_layer(node, layer, node.args[:1], type(layer).__name__)
        finished = self.finish()
        _keep_the_rest(self.owner, finished, self._called_before - self._children())
        return finished

    def _children(self) -> set[str]:
        calls = (node for node in self.nodes if node.op == "call_module")
        return {str(node.target).split(".")[0] for node in calls}

    def _record(self, node: fx.Node, now: str) -> None:
        self.changes.append(Change(self.path, f"{called_name(node)}()", now))

    def _follow_changes_in_place(self) -> bool:
        """Let what uses a value after it was changed in place use the outcome of the change.

        Otherwise a change whose outcome has no name, as ``y.relu_()``, would count as unused, and
        be lost with the layer that made it. Tells whether there was one.
        """
        followed = False
        nodes = self.nodes
        place = {node: number for number, node in enumerate(nodes)}
        for node in nodes:
            changed = node.args[0] if node.args else node.kwargs.get("input")
            if isinstance(changed, fx.Node) and works_in_place(node, self.layer(node)):
                for user in list(changed.users):
                    if place[user] > place[node]:
                        user.replace_input_with(changed, node)
                        followed = True
        return followed


def open_forward_pass(
    path: str, module: nn.Module, call: Call, fixed: Sequence[int | str], *, is_root: bool
) -> ForwardPass | None:
    """Trace the forward pass of a module; None if it is not the same for all inputs.

    Arguments that are `fixed`, by position or name, do not depend on the image.
    """
    graph = _own_graph(module, len(call[0]), is_root)
    if graph is None:
        return None
    try:
        return ForwardPass(path, module, graph, call, fixed)
    except Exception:  # a trace that does not hold for the very input it was made for
        return None


def _own_graph(module: nn.Module, given: int, is_root: bool) -> fx.Graph | None:
    """Trace a forward pass that is called with `given` arguments; None if it may branch."""
    left_out = list(inspect.signature(module.forward).parameters.values())[given:]
    optional = {p.name for p in left_out if p.default is not p.empty}
    # The twin is called like the network, so what was left out keeps its default. Other modules
    # may be called in several ways.
    defaults = {p.name: p.default for p in left_out} if is_root and optional else None
    try:
        graph, in_use = (_trace_in_mode(module, training, defaults) for training in (True, False))
    except Exception:  # whatever a forward pass does with a symbol that only tensors can do
        return None
    if str(graph) != str(in_use):
        return None  # it does one thing in training and another in use
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    if defaults is None and any(node.target in optional and node.users for node in inputs):
        return None  # a branch may depend on the argument, and a trace shows one side only
    return graph


def _trace_in_mode(module: nn.Module, training: bool, constants: dict[str, Any] | None) -> fx.Graph:
    """Trace a forward pass in a given mode, without what it tells dropout about that mode."""
    before = module.training
    module.training = training
    try:
        graph = trace(module, lambda child: True, constants=constants, record_buffers=True)
    finally:
        module.training = before
    for node in graph.nodes:
        node.type = None  # annotations may be mere strings, with which a twin could not be pickled
        if node.op in ("call_function", "call_method") and node.target in INPUT_FIRST:
            _tensors_first(node)
        if node.op == "call_function" and node.target in DROPOUTS:
            node.args = node.args[:2]
            node.kwargs = {name: value for name, value in node.kwargs.items() if name == "p"}
    return graph


def _tensors_first(node: fx.Node) -> None:
    """Pass the tensors of a call by position, however they were passed."""
    given = [name for name in ("input", "other") if name in node.kwargs]
    tensors = [node.kwargs[name] for name in given]
    node.args = (*node.args, *tensors)
    node.kwargs = {name: value for name, value in node.kwargs.items() if name not in given}


def _features(
    owner: nn.Module, graph: fx.Graph, call: Call, fixed: Sequence[int | str]
) -> dict[fx.Node, float]:
    """Run a graph once and return the values that are tensors and depend on the input.

    Each comes with its root mean square.
    """
    features: dict[fx.Node, float] = {}
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    from_input = {
        node
        for position, node in enumerate(inputs)
        if position not in fixed and node.target not in fixed
    }

    class FeatureFinder(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            result = super().run_node(n)
            if n in from_input or not from_input.isdisjoint(n.all_input_nodes):
                from_input.add(n)
                if isinstance(result, Tensor) and result.is_floating_point():
                    features[n] = size_of_features(result)
            return result

    traced = fx.GraphModule(owner, graph)
    args, kwargs = call
    bound = inspect.signature(traced.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    FeatureFinder(traced).run(*bound.args)
    graph.owning_module = None  # it was needed for this run only
    return features


def size_of_features(args: Any) -> float:
    """Return the root mean square of the first tensor among some arguments, or 1."""
    for leaf in tree_leaves(args):
        if isinstance(leaf, Tensor) and leaf.is_floating_point() and leaf.ndim:
            size = float(leaf.detach().double().square().mean().sqrt())
            return size if 0 < size < float("inf") else 1.0
    return 1.0


def _keep_the_rest(module: nn.Module, traced: fx.GraphModule, dropped: set[str]) -> None:
    """Give a traced module what its forward pass does not touch: heads, buffers, hooks."""
    for name, value in vars(module).items():
        if not name.startswith("_") and not hasattr(traced, name):
            setattr(traced, name, value)
    for kind in ("_modules", "_parameters", "_buffers"):
        for name, part in getattr(module, kind).items():
            if name not in dropped:
                getattr(traced, kind).setdefault(name, part)
    # What was a plain attribute, or not to be saved, is not to be saved now.
    saved = set(module._buffers) - module._non_persistent_buffers_set
    traced._non_persistent_buffers_set |= set(traced._buffers) - saved
    for hooks in ("_forward_hooks", "_forward_pre_hooks"):
        getattr(traced, hooks).update(getattr(module, hooks))
