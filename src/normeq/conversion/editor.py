"""Edit a copy of a network: exchange its layers, and operations in the forward passes it has.

Every module's own forward pass is traced by itself with torch.fx, its children opaque. So only
modules whose own operations must change become graph modules, names stay as they are, and a
forward pass that cannot be traced stays what it is while its children are still converted.
"""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from normeq.conversion.changes import Change

ADDITIONS = (operator.add, operator.iadd, torch.add, "add", "add_")
SUBTRACTIONS = (operator.sub, operator.isub, torch.sub, "sub", "sub_")
PRODUCTS = (operator.mul, operator.imul, torch.mul, "mul", "mul_")

#: Activations that bend at a scale of their own, as layers and as functions.
SMOOTH_LAYERS = (nn.GELU, nn.SiLU, nn.ELU, nn.CELU, nn.SELU, nn.Softplus, nn.Mish, nn.Hardswish,
                 nn.ReLU6)  # fmt: skip
SMOOTH_CALLS = (F.gelu, F.silu, F.elu, F.celu, F.selu, F.softplus, F.mish, F.hardswish, F.relu6)
#: Activations that scale with their input.
KINKED_LAYERS = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.RReLU)
KINKED_CALLS = (F.relu, torch.relu, F.leaky_relu, F.prelu, F.rrelu, "relu", "relu_")


#: Dropout as a function, which is told the mode, and as a layer, which knows it.
DROPOUTS: dict[Any, type[nn.Module]] = {
    F.dropout: nn.Dropout,
    F.dropout1d: nn.Dropout1d,
    F.dropout2d: nn.Dropout2d,
    F.dropout3d: nn.Dropout3d,
    F.alpha_dropout: nn.AlphaDropout,
}

_IN_PLACE_OPERATORS = (operator.iadd, operator.isub, operator.imul, operator.itruediv)
TANHS = (torch.tanh, F.tanh, "tanh")
AVERAGE_POOLS = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
#: Calls whose arguments start with ``input`` and, if they take two tensors, ``other``.
_INPUT_FIRST = {*ADDITIONS, *SUBTRACTIONS, *PRODUCTS, *SMOOTH_CALLS, *KINKED_CALLS, *DROPOUTS,
                *TANHS, *AVERAGE_POOLS, F.pad}  # fmt: skip


def name_of(layer: nn.Module) -> str:
    """Return the name of a layer's class, without what torch puts before parametrized ones."""
    return type(layer).__name__.removeprefix("Parametrized")


class Part:
    """The forward pass of one module, as a graph of calls to its children and of operations."""

    def __init__(self, path: str, module: nn.Module, graph: fx.Graph) -> None:
        self.path = path
        self.traced = fx.GraphModule(module, graph, type(module).__name__)
        self.changes: list[Change] = []
        self._features: set[fx.Node] = set()
        self._called = self._children()

    @property
    def without_use(self) -> set[str]:
        """The children that were called before the changes, and are no more."""
        return self._called - self._children()

    def _children(self) -> set[str]:
        calls = (node for node in self.nodes if node.op == "call_module")
        return {str(node.target).split(".")[0] for node in calls}

    @property
    def nodes(self) -> list[fx.Node]:
        """The nodes, in order; changes while walking over them do no harm."""
        return list(self.traced.graph.nodes)

    def calls(self, node: fx.Node, targets: Sequence[Any]) -> bool:
        """Whether a node calls one of these functions or methods."""
        return node.op in ("call_function", "call_method") and node.target in targets

    def layer(self, node: Any) -> nn.Module | None:
        """Return the child that a node calls, if it calls one."""
        if isinstance(node, fx.Node) and node.op == "call_module":
            return self.traced.get_submodule(str(node.target))
        return None

    def is_feature(self, value: Any) -> bool:
        """Whether an argument is a tensor that depends on the input."""
        return value in self._features

    def learn_types(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Run the graph once to learn which values are features."""
        features = self._features
        from_input: set[fx.Node] = set()

        class Watch(fx.Interpreter):
            def run_node(self, n: fx.Node) -> Any:
                result = super().run_node(n)
                if n.op == "placeholder" or not from_input.isdisjoint(n.all_input_nodes):
                    from_input.add(n)
                    if isinstance(result, Tensor) and result.is_floating_point():
                        features.add(n)
                return result

        bound = inspect.signature(self.traced.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        Watch(self.traced).run(*bound.args)

    def call_instead(self, node: fx.Node, layer: nn.Module, args: Sequence[Any], now: str) -> None:
        """Let a node call a new layer."""
        name = f"{node.name}_{type(layer).__name__.lower()}"
        self.traced.add_submodule(name, layer)
        with self.traced.graph.inserting_before(node):
            new = self.traced.graph.call_module(name, tuple(args))
        self._record(node, now)
        self._exchange(node, new)

    def drop(self, node: fx.Node, instead: fx.Node, now: str) -> None:
        """Leave an operation out."""
        self._record(node, now)
        self._exchange(node, instead)

    def retarget(
        self, node: fx.Node, function: Callable[..., Any], now: str, **options: Any
    ) -> None:
        """Let a node call another function, with other options."""
        self._record(node, now)
        with self.traced.graph.inserting_before(node):
            new = self.traced.graph.call_function(function, node.args, {**node.kwargs, **options})
        self._exchange(node, new)

    def _exchange(self, node: fx.Node, new: fx.Node) -> None:
        if node in self._features:
            self._features.add(new)
        node.replace_all_uses_with(new)
        self.traced.graph.erase_node(node)

    def _record(self, node: fx.Node, now: str) -> None:
        target = node.target
        was = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        self.changes.append(Change(self.path, f"{was}()", now))


class Editor:
    """A copy of a network that is being converted, and the changes made to it so far."""

    def __init__(self, module: nn.Module, args: Sequence[Any]) -> None:
        self.root = copy.deepcopy(module)
        self.args = args
        self.changes: list[Change] = []
        for _ in self.parts():
            pass  # those with changes in place are written out before any layer is exchanged

    def layers(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield every module with its path; changes while walking over them do no harm."""
        attentions = [
            f"{path}."
            for path, module in self.root.named_modules()
            if isinstance(module, nn.MultiheadAttention)  # whose layers are not called
        ]
        for path, module in list(self.root.named_modules()):
            if not path.startswith(tuple(attentions)):
                yield path, module

    def replace(self, path: str, old: nn.Module, new: nn.Module, now: str = "") -> None:
        """Put another layer in the place of one, wherever it is used; old parts keep their mode."""
        kept = set(old.modules())
        for layer in new.modules():
            if layer not in kept:
                layer.training = old.training
        if old is self.root:
            self.root = new
        for parent in list(self.root.modules()):
            for name, child in parent._modules.items():
                if child is old:
                    parent._modules[name] = new
        self.note(path, name_of(old), now or name_of(new))

    def wrap(self, wrapper: nn.Module) -> None:
        """Put a network around the whole."""
        self.note("", type(self.root).__name__, f"inside {type(wrapper).__name__}")
        wrapper.training = self.root.training
        self.root = wrapper

    def note(self, path: str, was: str, now: str) -> None:
        """Record a change made within a layer."""
        self.changes.append(Change(path, was, now))

    def parts(self) -> Iterator[Part]:
        """Yield the forward pass of every module that can be traced; exchange what was changed."""
        calls = self._observe()
        for path, module in self.layers():
            if module not in calls or _is_opaque(module):
                continue
            args, kwargs = calls[module]
            graph = _own_graph(module, len(args), module is self.root)
            if graph is None:
                continue
            rewritten = _follow_changes_in_place(module, graph)
            part = Part(path, module, graph)
            try:
                part.learn_types(args, kwargs)
            except Exception:  # a trace that does not hold for the very input it was made for
                continue
            yield part
            if part.changes or rewritten:
                self._adopt(module, part)

    def _adopt(self, module: nn.Module, part: Part) -> None:
        """Put a changed forward pass in the place of a module, which keeps its attributes."""
        for node in part.nodes:
            if part.calls(node, tuple(DROPOUTS)):
                chance = node.args[1] if len(node.args) > 1 else node.kwargs.get("p", 0.5)
                layer = DROPOUTS[node.target](chance)
                part.call_instead(node, layer, node.args[:1], type(layer).__name__)
        part.traced.graph.eliminate_dead_code()
        part.traced.delete_all_unused_submodules()
        part.traced.recompile()
        _keep_the_rest(module, part.traced, part.without_use)
        before = len(self.changes)
        self.replace(part.path, module, part.traced)
        self.changes[before:] = part.changes

    def _observe(self) -> dict[nn.Module, tuple[tuple[Any, ...], dict[str, Any]]]:
        """Run the network once and return the arguments that each module was first called with."""
        seen: dict[nn.Module, tuple[tuple[Any, ...], dict[str, Any]]] = {}

        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            seen.setdefault(module, (args, kwargs))

        handles = [
            module.register_forward_pre_hook(hook, with_kwargs=True)
            for module in self.root.modules()
        ]
        modes = {module: module.training for module in self.root.modules()}
        self.root.eval()
        with torch.no_grad():
            self.root(*self.args)
        for module, mode in modes.items():
            module.training = mode
        for handle in handles:
            handle.remove()
        return seen


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


def _is_opaque(module: nn.Module) -> bool:
    """Whether a module is a layer rather than a network written in Python."""
    home = type(module).__module__
    layer = home.startswith(("torch.nn.", "normeq.nn.")) or hasattr(module, "parametrizations")
    return layer and not isinstance(module, nn.Sequential)


class _ChildrenAreLeaves(fx.Tracer):
    #: What is computed from a buffer is traced, not frozen.
    proxy_buffer_attributes = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


def _own_graph(module: nn.Module, given: int, is_root: bool) -> fx.Graph | None:
    """Trace a module's own forward pass; none if it is not the same for all inputs."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    optional = [p.name for p in parameters[given:] if p.default is not p.empty]
    fixed = {p.name: p.default for p in parameters[given:]} if is_root and optional else None
    try:
        graph, other = (_trace_as(module, mode, fixed) for mode in (True, False))
    except Exception:  # whatever a forward pass does with a symbol that only tensors can do
        return None
    if str(graph) != str(other):
        return None  # it does one thing in training and another in use
    # Of a branch that an optional argument opens, a trace shows one side only.
    used = [n for n in graph.nodes if n.op == "placeholder" and n.target in optional and n.users]
    return None if used and not fixed else graph


def _trace_as(module: nn.Module, training: bool, fixed: dict[str, Any] | None) -> fx.Graph:
    """Trace a forward pass in a given mode, without what it tells dropout about that mode."""
    before = module.training
    module.training = training
    try:
        graph = _ChildrenAreLeaves().trace(module, fixed)
    finally:
        module.training = before
    for node in graph.nodes:
        node.type = None  # annotations may be mere strings, with which a twin could not be pickled
        if node.op in ("call_function", "call_method") and node.target in _INPUT_FIRST:
            _tensors_first(node)
        if node.op == "call_function" and node.target in DROPOUTS:
            node.args = node.args[:2]
            node.kwargs = {name: value for name, value in node.kwargs.items() if name == "p"}
    return graph


def _follow_changes_in_place(module: nn.Module, graph: fx.Graph) -> bool:
    """Let what uses a value after it was changed in place use the outcome of the change.

    Otherwise a change whose outcome has no name, as ``y.relu_()``, would count as unused, and be
    lost with the layer that made it. Tells whether there was one.
    """
    followed = False
    nodes = list(graph.nodes)
    place = {node: number for number, node in enumerate(nodes)}
    for node in nodes:
        changed = node.args[0] if node.args else node.kwargs.get("input")
        if isinstance(changed, fx.Node) and _is_in_place(module, node):
            for user in list(changed.users):
                if place[user] > place[node]:
                    user.replace_input_with(changed, node)
                    followed = True
    return followed


def _is_in_place(module: nn.Module, node: fx.Node) -> bool:
    """Whether a node changes its first argument."""
    if node.op == "call_module":
        return bool(getattr(module.get_submodule(str(node.target)), "inplace", False))
    if node.op not in ("call_function", "call_method"):
        return False
    name = str(getattr(node.target, "__name__", node.target))
    by_name = name.endswith("_") and not name.endswith("__")
    return by_name or node.target in _IN_PLACE_OPERATORS or node.kwargs.get("inplace") is True


def _tensors_first(node: fx.Node) -> None:
    """Pass the tensors of a call by position, however they were passed."""
    given = [name for name in ("input", "other") if name in node.kwargs]
    tensors = [node.kwargs[name] for name in given]
    node.args = (*node.args, *tensors)
    node.kwargs = {name: value for name, value in node.kwargs.items() if name not in given}
