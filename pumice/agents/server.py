# SPDX-License-Identifier: Apache-2.0
"""The server of the tools: the Model Context Protocol, over stdio or streamable HTTP, by its official SDK.

The one module that imports the SDK: `pumice mcp` imports this one when it is called.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from uvicorn import Config
from uvicorn import Server as HttpServer

from pumice import __version__
from pumice.agents.asking import ToolDesk, UnansweredError, output_schema
from pumice.agents.tools import TOOLS, AgentTool, read_question
from pumice.errors import InputError

if TYPE_CHECKING:
    import socket

INSTRUCTIONS: Final = (
    "Read-only questions about {source}, a cluster scheduled by Volcano's rules. Begin with `queues` or `who_is_next` "
    "for the names of queues and jobs. Each answer has the command that repeats it, and `left_out` where it was cut. "
    "A reason is a stable code; `why_pending` says it in words (`message`) with what would lift it (`unblock`)."
)
READS: Final = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def build_server(desk: ToolDesk, source: str) -> Server[Any]:
    """Return the server of a desk's answers; `source` names the cluster."""

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[described(each) for each in TOOLS.values()])

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            answer = await desk.answer(read_question(params.name, dict(params.arguments or {})))
        except (UnansweredError, InputError) as error:
            return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        text = json.dumps(answer.told, ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer.told)

    return Server(
        "pumice",
        version=__version__,
        instructions=INSTRUCTIONS.format(source=source),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


@cache
def described(tool: type[AgentTool]) -> Tool:
    """Return the description of a tool for clients."""
    schema = msgspec.json.schema(tool)
    definition = schema["$defs"].pop(tool.__name__)
    del definition["title"]  # the name of a class
    definition |= {"$defs": schema["$defs"]} if schema["$defs"] else {}
    description = " ".join((definition.pop("description", "") or "").split())
    return Tool(
        name=tool.name,
        title=tool.title,
        description=description,
        input_schema=definition,
        output_schema=output_schema(tool),
        annotations=READS,
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Serve the client that started this process, until it closes the pipe."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(server: Server[Any], listener: socket.socket, host: str) -> None:
    """Serve clients of this machine at `/mcp` until a signal. Pages of other origins, and names of other machines, are
    refused: the SDK looks at Host and Origin where it serves the loopback.
    """
    app = server.streamable_http_app(host=host, stateless_http=True, json_response=True)
    config = Config(app, log_level="warning", access_log=False, lifespan="on", ws="none")
    await HttpServer(config).serve(sockets=[listener])
