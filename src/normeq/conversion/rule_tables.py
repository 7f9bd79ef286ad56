"""Tables from a type of layer, or from an operation, to what a conversion makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from torch import Tensor, fx, nn

from normeq.conversion.forward_pass import ForwardPass
from normeq.conversion.network_editor import NetworkEditor

#: Converts a layer: takes the editor, the layer's path, the layer, and which channels of its input
#: do not move with the offset, where that is known.
LayerRule = Callable[[NetworkEditor, str, Any, Tensor | None], None]
#: Converts an operation: takes the forward pass and the operation's node.
CallRule = Callable[[ForwardPass, fx.Node], None]

RuleT = TypeVar("RuleT")


def for_each(keys: Iterable[Any], rule: RuleT) -> dict[Any, RuleT]:
    """Return a table in which these types, or these operations, share one rule."""
    return dict.fromkeys(keys, rule)


def replace_by(make: Callable[[], nn.Module]) -> LayerRule:
    """Return the rule that exchanges a layer for a new one without parameters."""

    def rule(editor: NetworkEditor, path: str, layer: nn.Module, still: Tensor | None) -> None:
        editor.replace(path, layer, make())

    return rule


def apply_rules(
    editor: NetworkEditor,
    layer_rules: Mapping[type[nn.Module], LayerRule],
    call_rules: Mapping[Any, CallRule],
    still_channels: Mapping[str, Tensor],
) -> None:
    """Convert every layer and every operation that has a rule; the first that fits counts."""
    for path, layer in editor.layers():
        rule = next((r for kind, r in layer_rules.items() if isinstance(layer, kind)), None)
        if rule is not None:
            rule(editor, path, layer, still_channels.get(path))
    for forward in editor.forward_passes:
        for node in forward.nodes:
            if node.op in ("call_function", "call_method") and node.target in call_rules:
                call_rules[node.target](forward, node)
