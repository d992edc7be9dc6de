"""The command: ``python -m cupel``."""

from __future__ import annotations

import sys

from cupel import _cupel


def main() -> None:
    """Runs the command ``cupel``."""
    sys.exit(_cupel.main(["cupel", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
