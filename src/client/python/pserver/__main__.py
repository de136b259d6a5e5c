"""``python -m pserver run …``: the command ``pserver``, which comes with the npm package; but ``python -m pserver
convert`` converts a file of PyTorch here."""

import sys

from ._command import become
from ._error import Error


def _convert() -> None:
    from .torch._convert import main

    try:
        print(main(sys.argv[2:]))
    except (Error, ImportError) as error:
        sys.exit(f"pserver: {getattr(error, 'code', 'UNSUPPORTED')}: {error}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["convert"]:
        _convert()
    else:
        become("pserver", "pserver.js")
