"""The server and its tools. stdout is the protocol, logs go to stderr; a refusal is an error that the agent can read."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

import klineage
from klineage.errors import KlineageError
from klineage.gate import GateEvent, Report
from klineage.gate.verdict import STAGES
from klineage.interop.mcp import tools
from klineage.interop.mcp.desk import Desk, Named
from klineage.interop.mcp.tools import Said

P = ParamSpec("P")
_SHOWN = 60  # characters of an argument that is refused

_INSTRUCTIONS = (
    "Optimizations of compute kernels (Triton, CUDA, C), each with what must hold first, what it gained and what breaks without "
    "it. Ask retrieve which hold for a kernel, show one, check it on your kernel, put its change into your code by hand, and "
    "gate the result before you take the next. Numbers stand with their trust: measured-gpu and measured-cpu are times; "
    "interpreted is an exact count and says nothing of time."
)

KernelPath = Annotated[
    str, Field(description="the kernel's file: absolute, or relative to the workspace (.py, .c, .cu)")
]
KernelSource = Annotated[str, Field(description="the kernel's text, in place of kernel_path; needs surface")]
Surface = Annotated[str, Field(description="triton, c or cuda; only needed where no file's name tells")]
Entry = Annotated[str, Field(description="the function to enter, when the file has several")]
WorkloadName = Annotated[
    str, Field(description="what the kernel computes: a shipped workload's name, or a path to a workload.py")
]
Platform = Annotated[
    str, Field(description="nvidia-sm90, cpu-x86-64-v3 ...; default: of the machine that gates")
]
Prior = Annotated[
    list[str] | None,
    Field(
        description="optimizations that are there already, e.g. tiling; those that are seen need not be named"
    ),
]


class _Server(MCPServer[Any]):
    """Says in one sentence what is wrong with a call, and refuses an argument that a tool has not."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        known = {tool.name: list(tool.input_schema.get("properties", ())) for tool in await self.list_tools()}
        for argument in arguments:
            if name in known and argument not in known[name]:
                there = ", ".join(known[name])
                raise ToolError(f"{name} has no argument {argument!r}; it has {there}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError(f"{name}: {_wrong(error.__cause__)}") from error


def _wrong(error: ValidationError) -> str:
    said = []
    for each in error.errors(include_url=False):
        argument = ".".join(map(str, each["loc"]))
        if each["type"] == "missing":
            said.append(f"{argument} is missing")
        else:
            given = repr(each["input"])
            shown = given if len(given) <= _SHOWN else f"{given[:_SHOWN]}..."
            said.append(f"{argument} is {shown}; {each['msg'][:1].lower()}{each['msg'][1:]}")
    return "; ".join(said)


def build(desk: Desk) -> MCPServer[Any]:
    """The server over what a desk has open."""
    server = _Server(
        "klineage", instructions=_INSTRUCTIONS, version=klineage.__version__, log_level="WARNING"
    )
    _reading(server, desk)
    _gating(server, desk)
    return server


def serve(workspace: Path, places: tuple[Path, ...]) -> None:
    """Serve on stdin and stdout until stdin ends. Raises KlineageError for a library that is not there."""
    desk = Desk(workspace, places)
    try:
        build(desk).run("stdio")
    finally:
        desk.close()


def _reading(server: MCPServer[Any], desk: Desk) -> None:
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @server.tool(annotations=reads)
    @_answering
    def retrieve(
        kernel_path: KernelPath = "",
        kernel_source: KernelSource = "",
        workload: WorkloadName = "",
        surface: Surface = "",
        platform: Platform = "",
        entry: Entry = "",
        lineage: Annotated[
            str, Field(description="in place of a kernel: the present state of this lineage")
        ] = "",
        prior: Prior = None,
        action: Annotated[str, Field(description="only cards of this action, e.g. prefetch")] = "",
        k: Annotated[int, Field(ge=1, le=50, description="the best k of each dimension, united")] = 4,
        near: Annotated[
            int, Field(ge=0, le=50, description="how many cards that do not hold yet are told")
        ] = 4,
        hypotheses: Annotated[
            bool, Field(description="also cards that no held-out trial has admitted, marked")
        ] = False,
    ) -> Said:
        """Which optimization cards hold for a kernel, why each is found, and what the near ones need first. Name a kernel and its
        workload for an answer with checks; or only a workload, a surface, a platform, or what is there already."""
        named = Named(kernel_path, kernel_source, surface, entry)
        return tools.retrieve(
            desk, desk.target(named, workload, platform, prior, action, lineage), k, near, hypotheses
        )

    @server.tool(annotations=reads)
    @_answering
    def show(card: Annotated[str, Field(description="the card's id, e.g. c.prefetch")]) -> Said:
        """One card: what must hold first, where it acts, the change as code, what it gained, its risks and its trials."""
        return tools.show(desk, card)

    @server.tool(annotations=reads)
    @_answering
    def check(
        card: Annotated[str, Field(description="the card's id")],
        workload: WorkloadName,
        kernel_path: KernelPath = "",
        kernel_source: KernelSource = "",
        surface: Surface = "",
        platform: Platform = "",
        entry: Entry = "",
        prior: Prior = None,
    ) -> Said:
        """Whether a card holds for one kernel: each precondition holds, fails or is unknown, and what is missing or in the way."""
        named = Named(kernel_path, kernel_source, surface, entry)
        return tools.check(desk, card, desk.target(named, workload, platform, prior, ""))

    @server.tool(annotations=reads)
    @_answering
    def lineage(
        id: Annotated[str, Field(description="a lineage; without one, all of the workspace are listed")] = "",
        step: Annotated[
            str, Field(description="a step of it, by K-number or commit: its kernel and what its gate said")
        ] = "",
    ) -> Said:
        """How an expert kernel came to be, one optimization at a time from the naive form on, each with what it gained."""
        return tools.lineage(desk, id, step)

    @server.tool(annotations=reads)
    @_answering
    def budget(
        lineage: Annotated[str, Field(description="of this lineage; without one, of all")] = "",
    ) -> Said:
        """What paid model calls have cost in this workspace, and what open ones may cost at most."""
        return tools.budget(desk, lineage)


def _gating(server: MCPServer[Any], desk: Desk) -> None:
    one_at_a_time = anyio.CapacityLimiter(1)  # two would spoil each other's times

    @server.tool(
        annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
    )
    async def gate(
        context: Context[Any, Any],
        workload: WorkloadName,
        kernel_path: KernelPath = "",
        kernel_source: KernelSource = "",
        surface: Surface = "",
        platform: Platform = "",
        entry: Entry = "",
        baseline_path: Annotated[str, Field(description="profile against this kernel: its file")] = "",
        baseline_source: Annotated[str, Field(description="profile against this kernel: its text")] = "",
        phase: Annotated[
            Literal["screening", "acceptance", "admission"],
            Field(description="how much is demanded: 3, 5 or 10 seeds"),
        ] = "acceptance",
    ) -> CallToolResult:
        """Judge a kernel: static checks, compile, correctness against the workload's reference on fresh secret inputs, and a profile
        against a baseline. Runs the kernel in a process of its own without network."""
        kernel = Named(kernel_path, kernel_source, surface, entry)
        baseline = Named(baseline_path, baseline_source, surface)
        run = functools.partial(tools.gated, desk, kernel, baseline, workload, platform, phase)
        return _result(tools.judged(await _streamed(run, context, one_at_a_time)))


async def _streamed(
    run: Callable[..., Report], context: Context[Any, Any], limiter: anyio.CapacityLimiter
) -> Report:
    """Run a gate in a thread, telling the client of each stage; a client that gives up ends the gate too."""
    given_up = threading.Event()
    events_in, events = anyio.create_memory_object_stream[GateEvent](1000)

    def on_event(event: GateEvent) -> None:
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.WouldBlock):
            if not given_up.is_set():
                anyio.from_thread.run_sync(events_in.send_nowait, event)

    async def tell() -> None:
        async with events:
            async for event in events:
                done = STAGES.index(event.stage) + (event.state == "done") if event.stage in STAGES else 0
                await context.report_progress(
                    done, len(STAGES), f"{event.stage}: {event.detail or event.state}"
                )

    def gated() -> Report | KlineageError:
        try:
            return run(on_event, given_up)
        except KlineageError as error:
            return error  # raised below: a task group would wrap it

    ended: Report | KlineageError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(tell)
        try:
            ended = await anyio.to_thread.run_sync(gated, abandon_on_cancel=True, limiter=limiter)
        finally:
            given_up.set()
            events_in.close()
    if not isinstance(ended, Report):
        raise ToolError(str(ended)) from ended
    return ended


def _answering(tool: Callable[P, Said]) -> Callable[P, CallToolResult]:
    """A tool's answer as text for the agent and as an object for programs; a refusal as an error that it can read."""

    @functools.wraps(tool)
    def answer(*arguments: P.args, **named: P.kwargs) -> CallToolResult:
        try:
            return _result(tool(*arguments, **named))
        except KlineageError as error:
            raise ToolError(str(error)) from error

    signature = inspect.signature(tool, eval_str=True).replace(return_annotation=CallToolResult)
    setattr(answer, "__signature__", signature)  # noqa: B010 - functions have none that a checker knows
    return answer


def _result(said: Said) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=said.text)], structured_content=said.data)
