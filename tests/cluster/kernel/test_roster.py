"""What must be stated of every kind that a controller looks after is stated."""

from importlib import import_module
from pkgutil import walk_packages

import pytest

from pumice.cluster import controllers
from pumice.cluster.api.admission import admission_of
from pumice.cluster.api.kinds import KINDS, MAKERS
from pumice.cluster.controllers.disruptions import SCALED
from pumice.cluster.controllers.family import OwnerRule
from pumice.cluster.kernel.roster import RULES
from pumice.core.objects.parts import kind_of


def test_each_rule_is_in_the_roster() -> None:
    for module in walk_packages(controllers.__path__, f"{controllers.__name__}."):
        import_module(module.name)
    assert {type(rule) for rule in RULES.values()} == set(OwnerRule.__subclasses__())


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_kind_that_makes_something_is_admitted(kind: str) -> None:
    assert admission_of(kind).validate is not None


def test_the_schema_names_the_kinds_that_rules_make() -> None:
    made = {owner: {kind_of(child) for child in rule.children} for owner, rule in RULES.items()}
    assert {owner for owner, children in made.items() if children} == MAKERS
    assert all(KINDS[owner].makes in made[owner] for owner in MAKERS)


def test_kinds_with_a_scale_count_for_budgets() -> None:
    assert set(SCALED) == {row.key for row in KINDS.values() if row.scale}
