"""The C library: finding and loading it, its functions and structs, and its status codes."""
