"""A local server that speaks the Messages API over HTTP: what the tests of paid proposers talk to.

Standard library only, on loopback, with the real SDK at the other end. It checks the key, the model and the
form of a request, streams its replies as server-sent events, keeps a prompt cache by the rules of
``cache_control``, and counts every token that it served, so that a ledger can be compared with it.

In a test (the fixture ``messages`` of tests/conftest.py starts one and sets the environment for children)::

    def test_something(messages):
        messages.say(Reply({"decision": "propose", ...}))         # for the next request
        messages.say(Fail(529), Fail(429, retry_after=1), Reply(answer))
        ...
        assert messages.served.output == ledger_says
        assert messages.requests[0].body["model"] == "claude-sonnet-5-5"

Each request takes the next of what was said; then ``otherwise`` answers, a function of the request (None: status
500).
``RulesModel`` of tests/model_walk.py is such a function: it answers a whole walk, in both directions.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-ant-test-0123456789abcdef"
EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CACHE_POINTS = 4  # what the API allows in one request


@dataclass(frozen=True)
class Reply:
    """A message that is streamed.

    content:     the text, or an object that becomes JSON.
    stop_reason: ``end_turn``, ``max_tokens``, ``refusal`` ...
    cut:         send only so many characters of the text (a truncated or refused answer).
    piece:       characters an event; pause: seconds before each event; wait: seconds before the first byte.
    thinking:    text of a thinking block that comes first; it is billed as output.
    fault:       after the text, an ``error`` event of this type in place of the end (``overloaded_error`` ...).
    drop:        after the text, the connection ends without a word.
    explanation: of a refusal.
    hold:        no event after the first piece until this is set.
    """

    content: str | dict[str, Any] | list[Any]
    stop_reason: str = "end_turn"
    cut: int | None = None
    piece: int = 400
    pause: float = 0.0
    wait: float = 0.0
    thinking: str = ""
    fault: str = ""
    drop: bool = False
    explanation: str = ""
    hold: threading.Event | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        text = self.content if isinstance(self.content, str) else json.dumps(self.content)
        return text if self.cut is None else text[: self.cut]


@dataclass(frozen=True)
class Fail:
    """An HTTP error in place of a message. ``retry_after``: seconds, as the header says them; ``location``: likewise."""

    status: int
    message: str = ""
    retry_after: float | None = None
    raw: bytes | None = None  # this body in place of the API's error object
    location: str = ""


@dataclass(frozen=True)
class Events:
    """What stands in the events of a stream, as it is, from a server that does not know how; nothing is billed.

    lasting: the connection stays open until this is set.
    """

    data: tuple[Any, ...]
    lasting: threading.Event | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Served:
    """Tokens by kind: new input, read from the cache, written to it, output."""

    calls: int = 0
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def __add__(self, other: Served) -> Served:
        return Served(*(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        return (self.calls, self.input, self.cache_read, self.cache_write, self.output)


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All text of the request: system prompt and messages."""
        return "\n".join(text for text, _ in blocks(self.body))


Answer = Reply | Fail | Events
Otherwise = Callable[[Received], Answer]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def tokens(text: str) -> int:
    """How many tokens this server counts in a text: one for each four bytes that were begun."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def blocks(body: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The text blocks of a request in the order of its prefix, and whether each ends a cached part."""
    contents = [body.get("system", "")] + [m.get("content", "") for m in body.get("messages", [])]
    for content in contents:
        if isinstance(content, str):
            if content:
                yield content, False
            continue
        for block in content:
            yield block.get("text", ""), "cache_control" in block


class MessagesServer:
    """One server on a port of its own; use it as a context manager."""

    def __init__(
        self, *, key: str = KEY, models: tuple[str, ...] | None = None, otherwise: Otherwise | None = None
    ) -> None:
        self.key = key
        self.models = models  # None: any
        self.otherwise = otherwise
        self.requests: list[Received] = []
        self.by_model: dict[str, Served] = {}
        self._said: list[Answer] = []
        self._cache: set[str] = set()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), name="messages server", daemon=True
        )

    def __enter__(self) -> MessagesServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What a child of the SDK needs to come here."""
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": self.key}

    @property
    def served(self) -> Served:
        """Every token served so far, over all models."""
        with self._lock:
            return sum(self.by_model.values(), Served())

    def say(self, *answers: Answer) -> None:
        """What the next requests get, one each, in this order."""
        with self._lock:
            self._said += answers

    # -- what the handler uses ------------------------------------------------------------------

    def answer(self, request: Received) -> Answer:
        with self._lock:
            self.requests.append(request)
            if self._said:
                return self._said.pop(0)
        if self.otherwise is None:
            return Fail(500, "this test said nothing for this request")
        return self.otherwise(request)

    def count_input(self, body: dict[str, Any]) -> Served:
        """Input tokens of a request, by kind; what it marks is in the cache from now on."""
        parts = [(tokens(text), marked) for text, marked in blocks(body)]
        prefix = hashlib.sha256(json.dumps([body["model"], body.get("output_config")]).encode())
        total = read = written = 0
        with self._lock:
            for (size, marked), (text, _) in zip(parts, blocks(body), strict=True):
                prefix.update(text.encode("utf-8", "surrogatepass") + b"\0")
                total += size
                if marked:
                    written = total
                    if prefix.hexdigest() in self._cache:
                        read = total
                    self._cache.add(prefix.hexdigest())
        return Served(1, total - written, read, written - read, 0)

    def bill(self, model: str, tokens_served: Served) -> None:
        with self._lock:
            self.by_model[model] = self.by_model.get(model, Served()) + tokens_served


def fault_of(server: MessagesServer, headers: dict[str, str], body: Any) -> Fail | None:
    """What the API would refuse in a request; None when it is in order."""
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if given != server.key:
        return Fail(401, "invalid x-api-key")
    if "anthropic-version" not in headers:
        return Fail(400, "anthropic-version: header is required")
    if not isinstance(body, dict):
        return Fail(400, "the body is not a JSON object")
    model = body.get("model")
    if not isinstance(model, str) or (server.models is not None and model not in server.models):
        return Fail(404, f"model: {model}")
    problem = _problem(body)
    return Fail(400, problem) if problem else None


def _problem(body: dict[str, Any]) -> str:
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        return "max_tokens: must be a positive integer"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or messages[0].get("role") != "user":
        return "messages: first message must use the user role"
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            return f"{name}: is not supported by this model"
    texts = list(blocks(body))
    if any(not text for text, _ in texts):
        return "messages: text content blocks must be non-empty"
    if sum(marked for _, marked in texts) > _CACHE_POINTS:
        return f"a maximum of {_CACHE_POINTS} blocks with cache_control may be provided"
    config = body.get("output_config") or {}
    if config.get("effort", "low") not in EFFORTS:
        return f"output_config.effort: must be one of {', '.join(EFFORTS)}"
    wanted = config.get("format")
    if wanted is not None and wanted.get("type") != "json_schema":
        return "output_config.format.type: must be json_schema"
    return _schema_problem(wanted["schema"]) if wanted else ""


def _schema_problem(schema: Any) -> str:
    """Structured output takes closed objects only, and no limits on lengths and numbers."""
    if isinstance(schema, list):
        return next((p for item in schema if (p := _schema_problem(item))), "")
    if not isinstance(schema, dict):
        return ""
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return "output_config.format.schema: for 'object' type, 'additionalProperties' must be false"
    unsupported = {"minLength", "maxLength", "minimum", "maximum", "maxItems", "pattern"} & schema.keys()
    if unsupported:
        return f"output_config.format.schema: {min(unsupported)} is not supported"
    return next((p for value in schema.values() if (p := _schema_problem(value))), "")


def _handler(server: MessagesServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                body = json.loads(raw)
            except ValueError:
                body = None
            failure = fault_of(server, headers, body)
            if failure is not None:
                return self._fail(failure)
            path = self.path.partition("?")[0]
            if path == "/v1/messages/count_tokens":
                total = sum(tokens(text) for text, _ in blocks(body))
                return self._json(200, {"input_tokens": total})
            if path != "/v1/messages":
                return self._fail(Fail(404, f"no such path: {path}"))
            answer = server.answer(Received(path, headers, body))
            if isinstance(answer, Fail):
                return self._fail(answer)
            try:
                self._as_they_are(answer) if isinstance(answer, Events) else self._message(body, answer)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            return None

        def _fail(self, fail: Fail) -> None:
            kind = _TYPES.get(fail.status, "api_error")
            error = {"type": "error", "error": {"type": kind, "message": fail.message or kind}}
            extra = {} if fail.retry_after is None else {"retry-after": f"{fail.retry_after:g}"}
            extra |= {"location": fail.location} if fail.location else {}
            self._send(fail.status, json.dumps(error).encode() if fail.raw is None else fail.raw, extra)

        def _json(self, status: int, value: Any) -> None:
            self._send(status, json.dumps(value).encode(), {})

        def _send(self, status: int, data: bytes, extra: dict[str, str]) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.send_header("request-id", "req_test")
            for name, value in extra.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _as_they_are(self, events: Events) -> None:
            self._begin_stream()
            for data in events.data:
                self._event(data["type"] if isinstance(data, dict) else "message_start", data)
            if events.lasting is not None:
                events.lasting.wait()
            self._chunk(b"")

        def _message(self, body: dict[str, Any], reply: Reply) -> None:
            time.sleep(reply.wait)
            events = _events(server, body, reply)
            if not body.get("stream"):
                return self._json(200, _whole(events))
            self._begin_stream()
            for number, event in enumerate(events):
                time.sleep(reply.pause)
                self._event(event["type"], event)
                if reply.hold is not None and number == 2:
                    reply.hold.wait()
            if reply.drop:
                self.close_connection = True
                return None
            self._chunk(b"")
            return None

        def _begin_stream(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.send_header("request-id", "req_test")
            self.end_headers()

        def _event(self, name: str, data: Any) -> None:
            self._chunk(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    return Handler


def _events(server: MessagesServer, body: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    """The events of one message. Tokens are billed as they are served: input at the start, then output."""
    model = body["model"]
    count = server.count_input(body)
    server.bill(model, count)
    usage = {
        "input_tokens": count.input,
        "cache_read_input_tokens": count.cache_read,
        "cache_creation_input_tokens": count.cache_write,
        "output_tokens": 1,
    }
    message = {
        "id": f"msg_{len(server.requests):06d}", "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    served = 0
    for index, (kind, text) in enumerate(
        [("thinking", reply.thinking)] * bool(reply.thinking) + [("text", reply.text)]
    ):
        empty = {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for start in range(0, len(text), reply.piece):
            part = text[start : start + reply.piece]
            server.bill(model, Served(output=tokens(part)))
            served += tokens(part)
            delta = {"type": f"{kind}_delta", kind: part}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if reply.drop:
        return
    if reply.fault:
        yield {"type": "error", "error": {"type": reply.fault, "message": reply.fault}}
        return
    delta = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    if reply.stop_reason == "refusal":
        delta["stop_details"] = {
            "type": "refusal",
            "category": None,
            "explanation": reply.explanation or None,
        }
    yield {"type": "message_delta", "delta": delta, "usage": usage | {"output_tokens": served}}
    yield {"type": "message_stop"}


def _whole(events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The events as one message, for a request without streaming."""
    message: dict[str, Any] = {}
    for event in events:
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            message["content"].append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            block = message["content"][event["index"]]
            block[block["type"]] += event["delta"][block["type"]]
        elif event["type"] == "message_delta":
            message |= event["delta"] | {"usage": event["usage"]}
    return message


def slowly(reply: Reply, pause: float = 0.01, piece: int = 60) -> Reply:
    """The same reply in small pieces."""
    return replace(reply, pause=pause, piece=piece)
