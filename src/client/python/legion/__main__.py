"""``python -m legion SCRIPT …``: the command ``legion``, which comes with the npm package."""

from pserver._command import become

if __name__ == "__main__":
    become("legion", "legion.js")
