"""The C library: where it is, what its functions and structs look like, and its status codes."""
