"""Laws for operations that users bring."""

from __future__ import annotations

from typing import Any, Literal, get_args

from normeq.certification.operation import LAWS, Law, Operation, law
from normeq.certification.rules.elementwise import curve, kink
from normeq.certification.rules.linear import averaging
from normeq.certification.rules.movement import move
from normeq.certification.shadow import Shadow
from normeq.errors import UsageError

#: Laws that have a name: see `register_law`.
NamedLaw = Literal["moves", "linear", "homogeneous", "curve"]


def register_law(operation: Any, law_of_it: Law | NamedLaw) -> None:
    """Teach `certify` the law of an operation, such as one made by `torch.library.custom_op`.

    Parameters
    ----------
    operation
        The operation, or its name with its namespace, as ``"mylib::blur"``.
    law_of_it
        A name: ``"moves"`` (values only change places), ``"linear"`` (in its first argument,
        without a bias; run on coefficients to find what it does to them), ``"homogeneous"``
        (scales with its input, as ReLU does, and must not see an offset), ``"curve"`` (anything
        else that is applied to each element: lawful for ratios). Or a function that takes an
        `Operation` and the arguments, with a `Shadow` in place of every tensor that depends on
        the image, and returns the shadow of the output; `normeq.certification.rules` has
        examples. For "moves" and "linear" the operation must run in double precision.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> import normeq
    >>> @torch.library.custom_op("docs::mirror", mutates_args=())
    ... def mirror(x: torch.Tensor) -> torch.Tensor:
    ...     return x.flip(-1)
    >>> @mirror.register_fake
    ... def _(x):
    ...     return torch.empty_like(x)
    >>> register_law("docs::mirror", "moves")
    >>> class Net(nn.Module):
    ...     def forward(self, x):
    ...         return mirror(x)
    >>> normeq.certify(Net(), torch.zeros(1, 1, 8, 8)).norm
    <Status.PROVEN: 'proven'>
    """
    name = operation if isinstance(operation, str) else _name_of(operation)
    if "::" not in name:
        raise UsageError(f"{name!r} does not name an operation: use 'namespace::name'.")
    plain = name.removeprefix("aten::")
    if isinstance(law_of_it, str):
        if law_of_it not in _NAMED:
            raise UsageError(f"{law_of_it!r} is not a law: use one of {get_args(NamedLaw)}.")
        LAWS[plain] = _NAMED[law_of_it]
    else:
        law(plain, many=True)(law_of_it)


def _name_of(operation: Any) -> str:
    known = getattr(operation, "_qualname", None) or getattr(operation, "_name", None)
    name = known or getattr(operation, "_qualified_op_name", str(operation))
    namespace, _, rest = str(name).partition("::")
    return f"{namespace}::{rest.split('.')[0]}"


def _linear(op: Operation, x: Shadow, *args: Any, **kwargs: Any) -> Shadow:
    return averaging(op, x, lambda plane: op.run(plane.contiguous(), *args, **kwargs))


_NAMED: dict[str, Law] = {"moves": move, "linear": _linear, "homogeneous": kink, "curve": curve}
