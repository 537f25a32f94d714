"""The MCP server: stdio and HTTP, who asks, what is declared, how answers are written."""
