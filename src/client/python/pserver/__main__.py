"""``python -m pserver run …``: the command ``pserver``, which comes with the npm package."""

from ._command import become

if __name__ == "__main__":
    become("pserver", "pserver.js")
