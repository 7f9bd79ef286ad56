"""Who may talk to the page: a browser on this machine that was given the address, and nobody else.

A page of another site can make a browser send requests to this machine. Such requests carry that
site as their origin, or, if its name was made to point here, as their host; and they do not know
the token.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: What each answer tells the browser: nothing from elsewhere, nothing to elsewhere.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LocalGuard:
    """Passes on requests for a host and a token, and refuses all others.

    Parameters
    ----------
    app
        What answers the requests that pass.
    port
        The port on which the page is served.
    token
        The first part of every path.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSocket is offered
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        answer = self._app if refusal is None else PlainTextResponse(refusal, 403)
        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> str | None:
        """Return why a request is refused, or None."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return "Refused: this page answers on 127.0.0.1 and localhost alone."
        origins = [f"http://{host}" for host in self._hosts]
        if any(origin not in origins for origin in headers.getlist("origin")):
            return "Refused: the request comes from another site."
        given = scope["path"].split("/")[1].encode()
        if not secrets.compare_digest(given, self._token.encode()):
            return "Refused: the token is missing. Use the address that normeq explore has printed."
        return None
