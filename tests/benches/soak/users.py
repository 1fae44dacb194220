"""Users of a soak under rbac: each has a token, and the role `edit` in its own namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pumice.core.objects.metadata import Object
from tests.benches.soak.plan import SoakPlan

ADMIN: Final = "soak-admin-token"
RBAC: Final = "rbac.authorization.k8s.io"


def token_of(plan: SoakPlan, namespace: str | None = None) -> str:
    """Return the token of a namespace's user, the administrator's for None, and none where no roles are enforced."""
    if not plan.users:
        return ""
    return ADMIN if namespace is None else _token(plan.names().index(namespace) % plan.users)


def roles(plan: SoakPlan) -> Iterator[Object]:
    """Yield a role for Volcano's jobs that is aggregated into `edit`, and the binding of `edit` in each namespace."""
    if not plan.users:
        return
    labels = {f"{RBAC}/aggregate-to-edit": "true"}
    rule = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["*"]}
    head = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole"}
    yield {**head, "metadata": {"name": "soak-jobs", "labels": labels}, "rules": [rule]}
    for number, namespace in enumerate(plan.names()):
        subject = {"kind": "User", "apiGroup": RBAC, "name": _user(number % plan.users)}
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "soak", "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
            "subjects": [subject],
        }


def credentials(plan: SoakPlan, folder: Path) -> Sequence[str]:
    """Write the files of tokens; return the options of `pumice run` that name them."""
    if not plan.users:
        return ()
    admin, users = folder / "admin-token", folder / "users.csv"
    admin.write_text(ADMIN, "utf-8")
    lines = [f"{_token(number)},{_user(number)},{number}\n" for number in range(plan.users)]
    users.write_text("".join(lines), "utf-8")
    for each in (admin, users):
        each.chmod(0o600)
    return ["--authorization", "rbac", "--token-file", str(admin), "--token-auth-file", str(users)]


def _user(number: int) -> str:
    return f"soak-user-{number:03d}"


def _token(number: int) -> str:
    return f"token-of-{_user(number)}"
