"""What packages of others build on: the interfaces, finding installed extensions, and the contracts they are held to."""
