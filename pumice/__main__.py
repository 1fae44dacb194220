# SPDX-License-Identifier: Apache-2.0
"""`python -m pumice` is the `pumice` command."""

from pumice.cli import main

if __name__ == "__main__":
    main()
