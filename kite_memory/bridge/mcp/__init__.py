"""The MCP server: what agents see of the bridge, on stdio and over HTTP. The SDK is imported here and nowhere else."""
