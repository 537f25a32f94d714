"""A bare MCP server of the same SDK, which returns its input: what the protocol itself costs, for `bench.bridge.mcp_calls`.

    python -m bench.bridge.echo_server [--http]

On standard input and output, or over streamable HTTP on a free port of loopback, which it prints. Nothing is checked, and
no one is asked for a token.
"""

import argparse
import socket
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


def server() -> Server[Any]:
    async def list_tools(_: ServerRequestContext[Any, Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])

    async def call_tool(_: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(params.arguments))])

    return Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)


async def on_stdio() -> None:
    echo = server()
    async with stdio_server() as (read, write):
        await echo.run(read, write, echo.create_initialization_options())


async def over_http() -> None:
    manager = StreamableHTTPSessionManager(app=server(), json_response=True, stateless=True)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that asyncio sets TCP_NODELAY
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(
        manager.handle_request, interface="asgi3", http="h11", lifespan="off", log_config=None, access_log=False, ws="none"
    )
    async with manager.run():
        await uvicorn.Server(config).serve(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--http", action="store_true")
    asked = parser.parse_args()
    anyio.run(over_http if asked.http else on_stdio)


if __name__ == "__main__":
    main()
