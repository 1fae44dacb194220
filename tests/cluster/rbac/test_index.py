# SPDX-License-Identifier: Apache-2.0
"""The index against a plain reading of Kubernetes' rules, on random roles, and what must be said of a decision."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from pumice.cluster.rbac.defaults import default_roles
from pumice.cluster.rbac.escalation import uncovered
from pumice.cluster.rbac.index import RoleIndex
from pumice.cluster.rbac.rules import (
    AUTHENTICATED,
    MASTERS,
    AccessRequest,
    PolicyRule,
    User,
    account_groups,
    account_name,
)

Obj = dict[str, Any]
VERBS = ("get", "list", "create", "*")
GROUPS = ("", "apps", "batch", "*")
RESOURCES = ("pods", "pods/log", "jobs", "*/log", "*", "nodes", "pods/*")
NAMES = ("a", "b", "c")
URLS = ("/metrics", "/api/*", "*", "/apis", "/api")
SPACES = ("one", "two")
USERS = ("u", "v", "w")
SETS = 500
DECISION_S = 20e-6


class PlainAuthorizer:
    """Goes through all bindings, their subjects and all rules, one by one, as Kubernetes' documentation tells it."""

    def __init__(self, objects: list[Obj]) -> None:
        self.objects = objects

    def allows(self, user: User, asked: AccessRequest) -> bool:
        if MASTERS in user.groups:
            return True
        return any(
            self._rule(rule, asked)
            for binding in self.objects
            if binding["kind"].endswith("Binding") and self._about(binding, asked)
            if any(self._is(subject, binding, user) for subject in binding["subjects"])
            for rule in self._rules(binding)
        )

    @staticmethod
    def _about(binding: Obj, asked: AccessRequest) -> bool:
        if binding["kind"] == "ClusterRoleBinding":
            return True
        return not asked.path and bool(asked.namespace) and binding["metadata"]["namespace"] == asked.namespace

    @staticmethod
    def _is(subject: Obj, binding: Obj, user: User) -> bool:
        if subject["kind"] == "User":
            return bool(user.name == subject["name"])
        if subject["kind"] == "Group":
            return subject["name"] in user.groups
        namespace = subject.get("namespace") or binding["metadata"].get("namespace")
        return user.name == f"system:serviceaccount:{namespace}:{subject['name']}"

    def _rules(self, binding: Obj) -> list[Obj]:
        ref = binding["roleRef"]
        for role in self.objects:
            meta = role["metadata"]
            if role["kind"] != ref["kind"] or meta["name"] != ref["name"]:
                continue
            if ref["kind"] == "ClusterRole" or meta["namespace"] == binding["metadata"]["namespace"]:
                return list(role["rules"])
        return []

    @staticmethod
    def _rule(rule: Obj, asked: AccessRequest) -> bool:
        if not {"*", asked.verb} & set(rule["verbs"]):
            return False
        if asked.path:
            return any(
                url == asked.path or (url[-1] == "*" and asked.path.startswith(url[:-1]))
                for url in rule.get("nonResourceURLs", ())
            )
        wanted = asked.resource + (f"/{asked.subresource}" if asked.subresource else "")
        names = rule.get("resourceNames")
        return (
            bool({"*", asked.group} & set(rule.get("apiGroups", ())))
            and any(
                each in ("*", wanted) or (asked.subresource and each == f"*/{asked.subresource}")
                for each in rule.get("resources", ())
            )
            and (not names or asked.name in names)
        )


def _some(random_: random.Random, values: tuple[str, ...], most: int = 2) -> list[str]:
    return random_.sample(values, random_.randint(1, most))


def _rule(random_: random.Random, *, cluster: bool) -> Obj:
    if cluster and random_.random() < 0.3:
        return {"verbs": _some(random_, VERBS), "nonResourceURLs": _some(random_, URLS)}
    rule = {
        "verbs": _some(random_, VERBS),
        "apiGroups": _some(random_, GROUPS),
        "resources": _some(random_, RESOURCES, 3),
    }
    return {**rule, "resourceNames": _some(random_, NAMES)} if random_.random() < 0.3 else rule


def _subject(random_: random.Random) -> Obj:
    match random_.randint(0, 3):
        case 0:
            return {"kind": "Group", "name": random_.choice(("g", "h", AUTHENTICATED))}
        case 1:
            return {"kind": "ServiceAccount", "name": "s", "namespace": random_.choice(SPACES)}
        case 2:
            return {"kind": "ServiceAccount", "name": "s"}
        case _:
            return {"kind": "User", "name": random_.choice(USERS)}


def objects_of(random_: random.Random) -> list[Obj]:
    """Return roles and bindings; some bindings name a role that does not exist."""
    made: list[Obj] = []
    for number in range(random_.randint(1, 5)):
        rules = [_rule(random_, cluster=True) for _ in range(random_.randint(0, 3))]
        made.append({"kind": "ClusterRole", "metadata": {"name": f"c{number}"}, "rules": rules})
    for number, space in enumerate(random_.choices(SPACES, k=random_.randint(0, 4))):
        rules = [_rule(random_, cluster=False) for _ in range(random_.randint(0, 3))]
        made.append({"kind": "Role", "metadata": {"name": f"r{number}", "namespace": space}, "rules": rules})
    for number in range(random_.randint(1, 6)):
        cluster = random_.random() < 0.4
        meta = {"name": f"b{number}", **({} if cluster else {"namespace": random_.choice(SPACES)})}
        kind = "ClusterRole" if cluster or random_.random() < 0.5 else "Role"
        name = f"{kind[0].lower()}{random_.randint(0, 5)}"
        subjects = [_subject(random_) for _ in range(random_.randint(0, 3))]
        sort = "ClusterRoleBinding" if cluster else "RoleBinding"
        made.append({"kind": sort, "metadata": meta, "roleRef": {"kind": kind, "name": name}, "subjects": subjects})
    return made


def _user(random_: random.Random) -> User:
    if random_.random() < 0.3:
        space = random_.choice(SPACES)
        return User(account_name(space, "s"), (*account_groups(space), AUTHENTICATED))
    groups = [*random_.sample(("g", "h"), random_.randint(0, 2)), AUTHENTICATED]
    return User(random_.choice(USERS), tuple(groups))


def _asked(random_: random.Random) -> AccessRequest:
    verb = random_.choice(("get", "list", "create", "delete"))
    if random_.random() < 0.2:
        return AccessRequest(verb, path=random_.choice(("/metrics", "/api", "/api/v1", "/apis/x", "/")))
    return AccessRequest(
        verb,
        random_.choice(("", "apps", "batch")),
        random_.choice(("pods", "jobs", "nodes")),
        random_.choice(("", "", "log", "scale")),
        random_.choice(("", *SPACES)),
        random_.choice(("", *NAMES)),
    )


def test_random_roles_agree_with_the_plain_reading() -> None:
    random_ = random.Random(45)
    allowed = 0
    for _ in range(SETS):
        objects = objects_of(random_)
        index, later = RoleIndex(), random_.sample(objects, len(objects) // 2)
        for obj in [*objects, *later]:  # some are heard twice, as a watch may tell them
            index.heard("ADDED", obj["kind"], obj)
        for _ in range(2):
            plain = PlainAuthorizer(objects)
            for _ in range(12):
                user, asked = _user(random_), _asked(random_)
                found = index.decide(user, asked)
                assert found.allowed is plain.allows(user, asked), (objects, user, asked)
                allowed += found.allowed
                spaces = index.namespaces(user, asked)
                for space in SPACES:
                    there = AccessRequest(asked.verb, asked.group, asked.resource, asked.subresource, space, asked.name)
                    if not asked.path:
                        assert (spaces is None or space in spaces) is plain.allows(user, there)
            gone = random_.choice(objects)
            objects = [each for each in objects if each is not gone]
            index.heard("DELETED", gone["kind"], gone)
    assert allowed > SETS // 2  # else it were about refusals alone


def test_rights_that_cover_allow_whatever_they_cover() -> None:
    """Check escalation by decisions: who holds rules that cover others may do all that these allow."""
    random_ = random.Random(7)
    for _ in range(SETS):
        held, asked = (
            [PolicyRule(tuple(_some(random_, VERBS)), tuple(_some(random_, GROUPS)), tuple(_some(random_, RESOURCES)))]
            for _ in range(2)
        )
        if uncovered(held, asked):
            continue
        one, other = _index(held), _index(asked)
        for _ in range(20):
            attributes = _asked(random_)
            if other.decide(User("u"), attributes).allowed:
                assert one.decide(User("u"), attributes).allowed


def _index(rules: list[PolicyRule]) -> RoleIndex:
    index = RoleIndex()
    index.heard("ADDED", "ClusterRole", {"metadata": {"name": "r"}, "rules": [rule.plain() for rule in rules]})
    index.heard("ADDED", "ClusterRoleBinding", binding("b", "r", "u"))
    return index


def binding(name: str, role: str, user: str, namespace: str = "") -> Obj:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "metadata": meta,
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }


def test_a_decision_names_its_binding_or_the_missing_role() -> None:
    index = _index([PolicyRule(("get",), ("",), ("pods",))])
    index.heard("ADDED", "RoleBinding", binding("lost", "gone", "u", "one"))
    asked = AccessRequest("get", resource="pods", namespace="one", name="p")
    allowed = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "u"'
    assert index.decide(User("u"), asked) == (True, allowed)
    refused = index.decide(User("u"), AccessRequest("list", resource="pods", namespace="one"))
    assert refused == (False, 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found')
    said = asked.refusal(User("x"))
    assert said == 'User "x" cannot get resource "pods" in API group "" in the namespace "one"'


@pytest.mark.slow
def test_a_decision_in_a_large_cluster_takes_20_us() -> None:
    """Judge requests with the roles of a cluster of 500 namespaces, 1,000 users and 200 ClusterRoles."""
    index, random_ = RoleIndex(), random.Random(1)
    for role in default_roles():
        index.heard("ADDED", role["kind"], role)
    for number in range(200):
        rules = [_rule(random_, cluster=True) for _ in range(20)]
        index.heard("ADDED", "ClusterRole", {"metadata": {"name": f"c{number}"}, "rules": rules})
    for space in range(500):
        for number in range(4):
            one = binding(f"b{number}", f"c{random_.randint(0, 199)}", f"u{random_.randint(0, 999)}", f"n{space}")
            index.heard("ADDED", "RoleBinding", one)
    users = [User(f"u{number}", ("team", AUTHENTICATED)) for number in range(1000)]
    asked = [
        (random_.choice(users), AccessRequest("list", "batch", "jobs", "", f"n{random_.randint(0, 499)}"))
        for _ in range(5000)
    ]
    best = 1.0
    for _ in range(3):  # the first one compiles
        began = time.process_time()
        for user, attributes in asked:
            index.decide(user, attributes)
        best = min(best, time.process_time() - began)
    assert best / len(asked) < DECISION_S
