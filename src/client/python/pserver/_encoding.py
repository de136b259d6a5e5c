"""How float32 elements are sent."""

from __future__ import annotations

from typing import Final, Literal, Optional

from . import errors
from ._error import shown, unexpected

#: The elements in two bytes each, rounded to nearest; None: as they are.
Encoding = Literal["bfloat16", "float16"]

_NUMBERS: Final = {None: 0, "bfloat16": 1, "float16": 2}


def encoding_number(encoding: Optional[Encoding]) -> int:
    """The number of ``pserver_encoding``. BAD_VALUE for an unknown one."""
    try:
        return _NUMBERS[encoding]
    except (KeyError, TypeError):
        raise unexpected(
            errors.BadValue, "encoding", "bfloat16 or float16", shown(encoding)
        ) from None
