"""Requests to an app without a network between: whatever the headers say reaches it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


def send(app: Any, address: str, headers: list[tuple[str, str]], method: str = "GET") -> Reply:
    """Send one request, with these headers and no others."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    sent: list[dict[str, Any]] = []
    received = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        try:
            return next(received)
        except StopIteration:
            await asyncio.Event().wait()  # nothing more comes
            raise

    async def collect(message: dict[str, Any]) -> None:
        sent.append(message)

    async def exchange() -> None:
        await asyncio.wait_for(app(scope, receive, collect), 120)

    asyncio.run(exchange())
    start = sent[0]
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Reply(start["status"], found, body)
