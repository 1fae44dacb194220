"""`python -m tests.benches SCENARIO …`: `pumice bench` with three scenarios more, which need clients or clusters."""

import sys

from pumice.cli import main
from pumice.proof.bench.scenarios import SCENARIOS
from tests.benches.scenarios import MORE

if __name__ == "__main__":
    SCENARIOS.update(MORE)
    sys.argv.insert(1, "bench")
    main()
