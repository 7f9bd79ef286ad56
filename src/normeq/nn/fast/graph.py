"""Forward passes as graphs: traced without touching anything global, and edited in place.

`torch.fx` traces by patching `torch.nn.Module` for the whole process, which breaks networks that
run in other threads meanwhile. Here only the modules being traced are changed, for as long as that
takes: each gets a subclass of its class that reports calls to the tracer. Trace a private copy.
"""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard

from torch import Tensor, fx, nn


def trace(
    module: nn.Module,
    is_leaf: Callable[[nn.Module], bool],
    *,
    constants: dict[str, Any] | None = None,
    record_buffers: bool = False,
) -> fx.Graph:
    """Return the graph of a module's forward pass.

    Parameters
    ----------
    module
        A network that no other thread uses.
    is_leaf
        Whether a module within it is called rather than traced.
    constants
        Values of arguments that are not to be symbols.
    record_buffers
        Whether what is computed from buffers is traced rather than computed now.

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
    >>> [node.target for node in trace(net, lambda layer: True).nodes]
    ['input', '0', '1', 'output']
    """
    return _Tracer(is_leaf, record_buffers).trace(module, constants)


class _Tracer(fx.Tracer):
    """A tracer that watches the modules of one network, and no others."""

    def __init__(self, is_leaf: Callable[[nn.Module], bool], record_buffers: bool) -> None:
        super().__init__(autowrap_modules=())  # type: ignore[arg-type]
        self._is_leaf = is_leaf
        self.proxy_buffer_attributes = record_buffers

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return self._is_leaf(m)

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Symbol(node, self)

    def trace(
        self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> fx.Graph:
        assert isinstance(root, nn.Module)
        self.root = root
        self.root_module_name = root._get_name()
        self.submodule_paths = {module: path for path, module in root.named_modules()}
        self.tensor_attrs = {
            value: f"{path}.{name}".lstrip(".")
            for path, module in root.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, Tensor)
        }
        self.graph = fx.Graph(tracer_cls=type(self))
        forward, args = self.create_args_for_root(type(root).forward, True, concrete_args)
        with _refusing_to_remember(root), self._watching(root):
            output = forward(*args)
            self.create_node("output", "output", (self.create_arg(output),), {})
        self.submodule_paths = None
        return self.graph

    @contextmanager
    def _watching(self, root: nn.Module) -> Iterator[None]:
        """Let calls and parameters of the network's modules pass through the tracer."""
        originals = {module: type(module) for module in root.modules()}
        watched = {kind: self._watched(kind) for kind in set(originals.values())}
        try:
            for module, kind in originals.items():
                module.__class__ = watched[kind]
            yield
        finally:
            for module, kind in originals.items():
                module.__class__ = kind

    def _watched(self, kind: type[nn.Module]) -> type[nn.Module]:
        known_parameters: dict[str, fx.Proxy] = {}

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return kind.__call__(module, *args, **kwargs)

            return self.call_module(module, forward, args, kwargs)

        def attribute(module: nn.Module, name: str) -> Any:
            value = kind.__getattr__(module, name)
            return self.getattr(name, value, known_parameters)

        methods = {"__call__": call, "__getattr__": attribute, "__module__": kind.__module__}
        return type(kind.__name__, (kind,), methods)


@contextmanager
def _refusing_to_remember(root: nn.Module) -> Iterator[None]:
    """Undo what a forward pass stores in its modules, which would be symbols, and refuse it."""
    places = [
        values
        for module in root.modules()
        for values in (vars(module), module._buffers, module._parameters)
    ]
    before = [dict(values) for values in places]
    changed = False
    try:
        yield
    finally:
        for values, kept in zip(places, before, strict=True):
            same = values.keys() == kept.keys() and all(values[k] is v for k, v in kept.items())
            if not same:
                changed = True
                values.clear()
                values.update(kept)
    if changed:
        raise ValueError(f"the forward pass of {type(root).__name__} stores something in it")


class _Symbol(fx.Proxy):
    """A symbol that can be rounded, as sizes are."""

    def __ceil__(self) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", math.ceil, (self,), {})

    def __floor__(self) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", math.floor, (self,), {})


class GraphEditor:
    """The graph of a forward pass, and the module that owns the layers it calls.

    Parameters
    ----------
    owner
        The module whose forward pass it is. New layers become its children.
    graph
        What `trace` returned for it.
    """

    def __init__(self, owner: nn.Module, graph: fx.Graph) -> None:
        self.owner = owner
        self.graph = graph

    @property
    def nodes(self) -> list[fx.Node]:
        """The nodes at this moment, in order."""
        return list(self.graph.nodes)

    def layer(self, node: Any) -> nn.Module | None:
        """Return the layer that a node calls, if it calls one."""
        if isinstance(node, fx.Node) and node.op == "call_module":
            return self.owner.get_submodule(str(node.target))
        return None

    def use_layer(self, node: fx.Node, layer: nn.Module, args: Sequence[Any] | None = None) -> None:
        """Let a node call a new layer, with other arguments if they are given."""
        name = f"{node.name}_{type(layer).__name__.strip('_').lower()}"
        self.owner.add_module(name, layer)
        node.op, node.target = "call_module", name
        if args is not None:
            node.args, node.kwargs = tuple(args), {}

    def use_function(
        self, node: fx.Node, function: Callable[..., Any], args: Sequence[Any], **options: Any
    ) -> None:
        """Let a node call a function."""
        node.op, node.target = "call_function", function
        node.args, node.kwargs = tuple(args), options

    def drop(self, node: fx.Node, instead: fx.Node) -> None:
        """Leave a node out; what used it uses another value."""
        node.replace_all_uses_with(instead)
        self.graph.erase_node(node)

    def finish(self) -> fx.GraphModule:
        """Return a module that computes what the graph says, with the layers it calls."""
        finished = _GraphModule(self.owner, self.graph, type(self.owner).__name__)
        finished.graph.eliminate_dead_code()
        finished.delete_all_unused_submodules()
        finished.recompile()
        return finished


class _GraphModule(fx.GraphModule):
    """A module that takes its graph along when it is copied or pickled.

    Others are traced again when they are loaded, which functions of ours do not allow.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        nodes = [
            (node.op, node.name, _portable(node.target), *_with_names((node.args, node.kwargs)))
            for node in self.graph.nodes
        ]
        owned = {
            str(node.target): operator.attrgetter(str(node.target))(self)
            for node in self.graph.nodes
            if node.op in ("call_module", "get_attr")
        }
        state = {name: vars(self)[name] for name in _KEPT}
        return _load, (owned, nodes, type(self).__name__, state)


#: What a module holds besides its graph, used by that or not.
_KEPT = ("_modules", "_parameters", "_buffers", "_non_persistent_buffers_set", "training")


@dataclass(frozen=True)
class _NodeName:
    """The name of a node, in place of the node itself, in the arguments of another node."""

    name: str


@dataclass(frozen=True)
class _FunctionName:
    """The name of a function that pickle does not find by itself, such as ``F.max_pool2d``."""

    module: str
    name: str


def _portable(target: Any) -> Any:
    is_hidden = "<locals>" in getattr(target, "__qualname__", "")
    return _FunctionName(target.__module__, target.__name__) if is_hidden else target


def _with_names(arguments: Any) -> Any:
    def named(argument: Any) -> Any:
        return _NodeName(argument.name) if isinstance(argument, fx.Node) else argument

    return fx.node.map_aggregate(arguments, named)


def _load(
    owned: dict[str, Any], nodes: list[Any], name: str, state: dict[str, Any]
) -> fx.GraphModule:
    """Build the module that `_GraphModule.__reduce__` took apart."""
    graph = fx.Graph()
    known: dict[str, fx.Node] = {}

    def found(argument: Any) -> Any:
        return known[argument.name] if isinstance(argument, _NodeName) else argument

    for op, node_name, target, args, kwargs in nodes:
        if isinstance(target, _FunctionName):
            target = getattr(importlib.import_module(target.module), target.name)
        args, kwargs = fx.node.map_aggregate((args, kwargs), found)
        known[node_name] = graph.create_node(op, target, args, kwargs, node_name)
    loaded = _GraphModule(owned, graph, name)
    vars(loaded).update(state)
    return loaded


def feeds_only(node: Any, user: fx.Node) -> TypeGuard[fx.Node]:
    """Whether a value is used in one place only."""
    return isinstance(node, fx.Node) and list(node.users) == [user]
