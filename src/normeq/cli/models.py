"""``normeq models``: the models that have a name."""

from __future__ import annotations

import typer


def models() -> None:
    """List the models that have a name: shipped networks and classical methods."""
    from normeq.classical import METHODS
    from normeq.models import read_card, shipped
    from normeq.models.releases import installed_release

    networks = {
        str(installed_release(name)): str(read_card(name).get("description", ""))
        for name in shipped()
    }
    methods = {
        name: f"{method.description}{'' if method.blind else ' (needs --sigma)'}"
        for name, method in METHODS.items()
    }
    width = max(map(len, [*networks, *methods]))
    for title, lines in (("networks", networks), ("classical methods", methods)):
        typer.echo(f"{title}:")
        for name, description in lines.items():
            typer.echo(f"  {name:<{width}}  {description}")
