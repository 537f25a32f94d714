"""One memory for every tool: what an agent asks for over MCP, on one machine or for a team."""
