"""The command: ``python -m cupel``."""

from __future__ import annotations

import signal
import sys

from cupel import _cupel


def main() -> None:
    """Runs the command ``cupel``."""
    # The command does not return to the interpreter, which would raise KeyboardInterrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_cupel.main(["cupel", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
