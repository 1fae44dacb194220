# SPDX-License-Identifier: Apache-2.0
"""Golden cases as tests: pytest collects `*.case.yaml` and tries each under a cluster's policy.

    pytest cases/ --gate-policy cluster/

Without the option a case is tried under the folder that its own `policy` names. Loaded by pytest itself, in every run
of an environment that has Pumice; nothing else is imported before a case is collected.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest._code.code import ExceptionInfo

    from pumice.questions.gate.cases import GoldenCase

SUFFIX: Final = ".case.yaml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("pumice").addoption(
        "--gate-policy", metavar="FOLDER", help="Policy under which golden cases (*.case.yaml) are tried."
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the golden cases of a folder."""
    if not file_path.name.endswith(SUFFIX):
        return None
    made: CaseFile = cast("Any", CaseFile).from_parent(parent, path=file_path)
    return made


class CaseFile(pytest.File):
    """A golden case."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one test for each expectation of the case."""
        from pumice.config.errors import PumiceError  # noqa: PLC0415 (only where there is a case)
        from pumice.questions.gate.cases import read_case  # noqa: PLC0415

        try:
            case = read_case(self.path)
        except PumiceError as error:
            raise self.CollectError(str(error)) from error
        for number, each in enumerate(case.expect):
            item: CaseItem = cast("Any", CaseItem).from_parent(self, name=each.name, case=case, number=number)
            yield item


class BrokenExpectationError(Exception):
    """An expectation of a case does not hold."""


class CaseItem(pytest.Item):
    """One expectation of a golden case."""

    def __init__(self, *, case: GoldenCase, number: int, **given: Any) -> None:
        cast("Any", super()).__init__(**given)
        self._case, self._number = case, number

    def runtest(self) -> None:
        """Run the case. Raises BrokenExpectationError."""
        from pumice.config.errors import PumiceError  # noqa: PLC0415 (only where there is a case)
        from pumice.questions.gate.alone import tried  # noqa: PLC0415

        try:
            broken = tried(self._case, self._number, self._policy())
        except PumiceError as error:
            raise BrokenExpectationError(str(error)) from error
        if broken:
            raise BrokenExpectationError(broken)

    def _policy(self) -> Path:
        given: str | None = self.config.getoption("--gate-policy")
        if given is not None:
            return Path(given)
        if not self._case.policy:
            raise BrokenExpectationError(f"{self.path}: name a policy: --gate-policy FOLDER, or `policy` in the case")
        return self.path.parent / self._case.policy

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: object = None) -> Any:
        """Return the words of a failure without a traceback."""
        if isinstance(excinfo.value, BrokenExpectationError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case stands."""
        return self.path, 0, f"{self._case.workload.name}: {self.name}"
