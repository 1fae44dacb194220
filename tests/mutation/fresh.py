"""One mutant of what runs at import, in a process that has not imported it: `python -m tests.mutation.fresh`.

The trial comes as JSON on standard input. The exit code is 0 if all tests passed, 1 if one failed, 2 else.
"""

from __future__ import annotations

import sys

import msgspec
import pytest

from tests.mutation.exchange import MutatedImport
from tests.mutation.judging import Naming, Trial

OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "--timeout", "0", "-m", "slow or not slow")


def main() -> int:
    """Run the trial's tests with its mutant."""
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)
    MutatedImport(trial.mutant).install()
    return 1 if pytest.main([*OPTIONS, *trial.tests], plugins=[Naming(trial.pipe)]) else 0


if __name__ == "__main__":
    sys.exit(main())
