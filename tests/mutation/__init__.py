"""Mutation testing: what the tests do not notice when it is changed. `nox -s mutation`; docs/mutation.md."""
