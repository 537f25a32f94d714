"""The MCP server: stdio and HTTP transports, authentication, tool declarations, rendering of answers."""
