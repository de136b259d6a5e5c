"""The version of this package, which is that of the C library."""

from typing import Final

VERSION: Final = "0.1.0"
