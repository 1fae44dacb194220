"""Mutation testing finds changes that no test notices: `nox -s mutation`, docs/explanation/mutation.md."""
