"""What is asked of a network: which inputs change how, and what its outputs must do then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from normeq.certification.shadow import ANY, Property, Shadow, near, span, uniform
from normeq.errors import UsageError

#: What an input is: an image, which takes gain and offset; a noise level, which takes the gain;
#: something fixed, such as a mask or coordinates; or an image with a gain and offset of its own.
InputLaw = Literal["image", "level", "fixed", "own-image"]
#: What the outputs must do: follow gain and offset, ignore both, or follow them channel by channel.
Question = Literal["equivariant", "invariant", "per-channel"]

_DEGREES: dict[str, tuple[float, float]] = {"image": (1.0, 1.0), "level": (1.0, 0.0)}


@dataclass(frozen=True)
class Variation:
    """One gain and offset: the inputs that take them, and whether outputs follow or ignore them.

    Attributes
    ----------
    laws
        What each input is; "own-image" where gain and offset are not its own here.
    channel
        The only channel of the image that changes; None for all.
    followed
        Whether outputs follow gain and offset.
    """

    laws: tuple[str, ...]
    channel: int | None
    followed: bool

    def shadows(self, args: Sequence[Any]) -> Iterator[Shadow | None]:
        """Yield the shadow of each argument; None for what is not a tensor."""
        for index, (leaf, law) in enumerate(zip(tree_leaves(list(args)), self.laws, strict=True)):
            if not isinstance(leaf, Tensor):
                yield None
                continue
            d, c = _DEGREES.get(law, (0.0, 0.0))
            shadow = uniform(leaf.shape, d, c, seed=index)
            if law == "image" and self.channel is not None:
                kept = self._of_channel(shadow.d)
                shadow = replace(shadow, d=shadow.d * kept, c=shadow.c * kept)
            yield shadow

    def applied(self, args: Sequence[Any], gain: float, offset: float) -> list[Any]:
        """Return the arguments with gain and offset."""
        leaves, spec = tree_flatten(list(args))
        changed = [
            self._applied_to(leaf, law, gain, offset)
            for leaf, law in zip(leaves, self.laws, strict=True)
        ]
        result: list[Any] = tree_unflatten(changed, spec)
        return result

    def _applied_to(self, leaf: Any, law: str, gain: float, offset: float) -> Any:
        d, c = _DEGREES.get(law, (0.0, 0.0))
        if not isinstance(leaf, Tensor) or not d:
            return leaf
        changed = gain * leaf + c * offset
        if law == "image" and self.channel is not None:
            return torch.where(self._of_channel(leaf) == 1, changed, leaf)
        return changed

    def expected(self, output: Tensor, gain: float, offset: float) -> Tensor:
        """Return what an output must be after a variation of the inputs."""
        if not self.followed:
            return output
        changed = gain * output + offset
        if self.channel is None:
            return changed
        return torch.where(self._of_channel(output) == 1, changed, output)

    def violation(self, output: Shadow, which: Property) -> str:
        """Say how a lawful output does other than asked; nothing if it does as asked."""
        wanted = torch.full_like(output.d, 1.0 if self.followed else 0.0)
        if self.channel is not None:
            wanted = wanted * self._of_channel(wanted)
        if which == "scale":
            wrong = (output.d != wanted) & (output.d != ANY)
            return f"the output has degree {span(output.d[wrong])}." if wrong.any() else ""
        wrong = ~near(output.c, wanted, output.slack)
        moved = span(output.c[wrong]) if wrong.any() else ""
        return f"the output moves by {moved} times the offset." if moved else ""

    def _of_channel(self, like: Tensor) -> Tensor:
        """Return a mask of the channel that changes."""
        mask = torch.zeros_like(like)
        mask.narrow(1, self.channel or 0, 1).fill_(1.0)
        return mask


def variations(
    args: Sequence[Any], inputs: Sequence[InputLaw] | None, question: Question
) -> list[Variation]:
    """List the gains and offsets that a question is about."""
    if question not in get_args(Question):
        raise UsageError(f"question {question!r} is unknown: use one of {get_args(Question)}.")
    laws = _laws(args, inputs)
    followed = question != "invariant"
    shared = tuple("fixed" if law == "own-image" else law for law in laws)
    image: Tensor = args[0]
    channels: Sequence[int | None] = [None]
    if question == "per-channel":
        channels = range(image.shape[1])
    own = [
        Variation(tuple("image" if n == index else "fixed" for n in range(len(laws))), None, False)
        for index, law in enumerate(laws)
        if law == "own-image"
    ]
    return [*(Variation(shared, channel, followed) for channel in channels), *own]


def _laws(args: Sequence[Any], inputs: Sequence[InputLaw] | None) -> list[str]:
    """Return what each argument is: by default an image, then noise levels."""
    leaves = tree_leaves(list(args))
    if inputs is None:
        floats = [isinstance(leaf, Tensor) and leaf.is_floating_point() for leaf in leaves]
        return ["image", *("level" if is_float else "fixed" for is_float in floats[1:])]
    unknown = [law for law in inputs if law not in get_args(InputLaw)]
    if unknown or len(inputs) != len(leaves):
        raise UsageError(
            f"inputs={tuple(inputs)} must name one of {get_args(InputLaw)} for each of the "
            f"{len(leaves)} arguments."
        )
    return list(inputs)
