# SPDX-License-Identifier: Apache-2.0
"""The roles and bindings that every Kubernetes cluster begins with, as far as they matter here.

Source: Kubernetes' `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`. There is no Node authorizer here, so
the binding `system:node` names the group `system:nodes`, as it did before there was one. The roles of single
controllers are left out: those controllers are part of this process.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pumice.cluster.rbac.rules import AUTHENTICATED, GROUP, MASTERS, UNAUTHENTICATED, PolicyRule
from pumice.core.objects.metadata import Object

LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
# Kubernetes' mark of roles that a server repairs at each start; here it only shows that no user made them.
ANNOTATIONS: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
CORE: Final = '""'
_READ: Final = "get list watch"
_WRITE: Final = "create delete deletecollection patch update"
_EVENTS: Final = ("create patch update", f"{CORE} events.k8s.io", "events")
# Asking about others' rights: for servers that let this one decide (`system:auth-delegator`).
_REVIEWS: Final = (
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
)


class _Role(NamedTuple):
    """`rules`: verbs, groups, resources and names, apart by blanks. `urls`: those that may be read. `into`: the role
    that collects it; `collects`: it collects those of its own name.
    """

    rules: tuple[tuple[str, ...], ...] = ()
    urls: str = ""
    into: str = ""
    collects: bool = False


_ROLES: Final[dict[str, _Role]] = {
    "cluster-admin": _Role((("*", "*", "*"),), "*"),
    # By labels: `view` is collected by `edit`, and that by `admin`, so roles that users add to one reach those above.
    "admin": _Role(collects=True),
    "edit": _Role(collects=True, into="admin"),
    "view": _Role(collects=True, into="edit"),
    "system:aggregate-to-admin": _Role(
        (
            ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
            (f"{_WRITE} {_READ}", GROUP, "rolebindings roles"),
        ),
        into="admin",
    ),
    "system:aggregate-to-edit": _Role(
        (
            (_READ, CORE, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
            # Who may create pods can run them as any account of the namespace, so this right adds nothing.
            ("impersonate", CORE, "serviceaccounts"),
            (_WRITE, CORE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
            ("create", CORE, "pods/eviction"),
            (
                _WRITE,
                CORE,
                (
                    "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale "
                    "secrets serviceaccounts services services/proxy"
                ),
            ),
            ("create", CORE, "serviceaccounts/token"),
            (
                _WRITE,
                "apps",
                (
                    "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
                    "statefulsets statefulsets/scale"
                ),
            ),
            (_WRITE, "autoscaling", "horizontalpodautoscalers"),
            (_WRITE, "batch", "cronjobs jobs"),
            (_WRITE, "policy", "poddisruptionbudgets"),
            (_WRITE, "networking.k8s.io", "ingresses networkpolicies"),
            (f"{_WRITE} {_READ}", "coordination.k8s.io", "leases"),
            (_WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
        ),
        into="edit",
    ),
    "system:aggregate-to-view": _Role(
        (
            # Without secrets: an account's token is one, and who reads it may do what the account may.
            (
                _READ,
                CORE,
                (
                    "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
                    "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status"
                ),
            ),
            (
                _READ,
                CORE,
                (
                    "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
                    "resourcequotas resourcequotas/status"
                ),
            ),
            (_READ, CORE, "namespaces"),
            (_READ, "discovery.k8s.io", "endpointslices"),
            (
                _READ,
                "apps",
                (
                    "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
                    "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale "
                    "statefulsets/status"
                ),
            ),
            (_READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
            (_READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
            (_READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
            (_READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
            (_READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
        ),
        into="view",
    ),
    # Of metrics-server, which installs it with the API that this process serves itself (`kubectl top pods`).
    "system:aggregated-metrics-reader": _Role((("get list watch", "metrics.k8s.io", "nodes pods"),), into="view"),
    "system:auth-delegator": _Role(_REVIEWS),
    "system:basic-user": _Role(
        (
            ("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            ("create", "authentication.k8s.io", "selfsubjectreviews"),
        )
    ),
    "system:discovery": _Role(
        urls="/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"
    ),
    "system:public-info-viewer": _Role(urls="/healthz /livez /readyz /version /version/"),
    "system:monitoring": _Role(
        urls="/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*",
    ),
    "system:service-account-issuer-discovery": _Role(urls="/.well-known/openid-configuration /openid/v1/jwks"),
    "system:certificates.k8s.io:kube-apiserver-client-approver": _Role(
        (("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"),)
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": _Role(
        (("approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving"),)
    ),
    "system:kube-scheduler": _Role(
        (
            _EVENTS,
            ("create", "coordination.k8s.io", "leases"),
            # By name, so that a scheduler cannot take the Lease of another component.
            ("get update list watch", "coordination.k8s.io", "leases", "kube-scheduler"),
            (_READ, CORE, "nodes"),
            (f"delete {_READ}", CORE, "pods"),
            ("create", CORE, "bindings pods/binding"),
            ("patch update", CORE, "pods/status"),
            (_READ, CORE, "replicationcontrollers services"),
            (_READ, "apps", "replicasets statefulsets"),
            (_READ, "policy", "poddisruptionbudgets"),
            (_READ, CORE, "persistentvolumeclaims persistentvolumes"),
            *_REVIEWS,
            (_READ, "storage.k8s.io", "csinodes csidrivers csistoragecapacities volumeattachments"),
            (_READ, CORE, "namespaces"),
            (_READ, "resource.k8s.io", "deviceclasses resourceclaims resourceslices"),
            ("patch update", "resource.k8s.io", "resourceclaims resourceclaims/status"),
        )
    ),
    # Apart from the role above, so that a scheduler of one's own can be given either of them.
    "system:volume-scheduler": _Role(
        (
            (f"{_READ} patch update", CORE, "persistentvolumes"),
            (_READ, "storage.k8s.io", "storageclasses"),
            (f"{_READ} patch update", CORE, "persistentvolumeclaims"),
        )
    ),
    "system:kube-controller-manager": _Role(
        (
            _EVENTS,
            ("create", "coordination.k8s.io", "leases"),
            ("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
            ("create", CORE, "secrets serviceaccounts"),
            ("delete", CORE, "secrets"),
            ("get", CORE, "configmaps namespaces secrets serviceaccounts"),
            ("update", CORE, "secrets serviceaccounts"),
            *_REVIEWS,
            # The garbage collector and the quotas watch every kind.
            ("list watch", "*", "*"),
            ("create", CORE, "serviceaccounts/token"),
        )
    ),
    "system:kubelet-api-admin": _Role(
        (
            (f"{_READ} proxy", CORE, "nodes"),
            ("*", CORE, "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        )
    ),
    # Wide: the Node authorizer, which would narrow it to the pods of one node, does not exist here.
    "system:node": _Role(
        (
            *_REVIEWS,
            ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
            (_READ, CORE, "services"),
            (f"create patch update {_READ}", CORE, "nodes"),
            ("patch update", CORE, "nodes/status"),
            ("create patch update", CORE, "events"),
            (f"create delete {_READ}", CORE, "pods"),
            ("patch update", CORE, "pods/status"),
            ("create", CORE, "pods/eviction"),
            (_READ, CORE, "configmaps secrets"),
            ("get", CORE, "persistentvolumeclaims persistentvolumes endpoints"),
            (f"create {_READ}", "certificates.k8s.io", "certificatesigningrequests"),
            ("create delete get patch update", "coordination.k8s.io", "leases"),
            ("get", "storage.k8s.io", "volumeattachments"),
            ("create", CORE, "serviceaccounts/token"),
            ("get patch update", CORE, "persistentvolumeclaims/status"),
            (_READ, "storage.k8s.io", "csidrivers"),
            ("create delete get patch update", "storage.k8s.io", "csinodes"),
            (_READ, "node.k8s.io", "runtimeclasses"),
            (f"{_WRITE} {_READ}", "resource.k8s.io", "resourceslices"),
            ("get", "resource.k8s.io", "resourceclaims"),
        )
    ),
    "system:node-bootstrapper": _Role(((f"create {_READ}", "certificates.k8s.io", "certificatesigningrequests"),)),
    "system:node-problem-detector": _Role((("get", CORE, "nodes"), ("patch", CORE, "nodes/status"), _EVENTS)),
    "system:node-proxier": _Role(
        (
            ("list watch", CORE, "endpoints services"),
            (_READ, CORE, "nodes"),
            _EVENTS,
            ("list watch", "discovery.k8s.io", "endpointslices"),
        )
    ),
    "system:persistent-volume-provisioner": _Role(
        (
            (f"create delete {_READ}", CORE, "persistentvolumes"),
            (f"{_READ} update", CORE, "persistentvolumeclaims"),
            (_READ, "storage.k8s.io", "storageclasses"),
            ("watch", CORE, "events"),
            _EVENTS,
        )
    ),
}

_BINDINGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "cluster-admin": (("Group", MASTERS),),
    "system:basic-user": (("Group", AUTHENTICATED),),
    "system:discovery": (("Group", AUTHENTICATED),),
    "system:public-info-viewer": (("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
    "system:kube-controller-manager": (("User", "system:kube-controller-manager"),),
    "system:node": (("Group", "system:nodes"),),
    "system:node-proxier": (("User", "system:kube-proxy"),),
}
"""Subjects by the name of the binding, which is that of its role."""


def default_roles() -> list[Object]:
    """Return the ClusterRoles and ClusterRoleBindings of a new cluster."""
    return [*(_role(name, role) for name, role in _ROLES.items()), *(_binding(*each) for each in _BINDINGS.items())]


def _role(name: str, role: _Role) -> Object:
    labels = {**LABELS, **({f"{AGGREGATE}{role.into}": "true"} if role.into else {})}
    made: Object = {**_head("ClusterRole", name, labels), "rules": [_rule(each).plain() for each in role.rules]}
    if role.urls:
        # A path can only be read, except by `cluster-admin`.
        made["rules"].append(PolicyRule(("*" if role.urls == "*" else "get",), urls=tuple(role.urls.split())).plain())
    if role.collects:
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{AGGREGATE}{name}": "true"}}]}
    return made


def _rule(parts: tuple[str, ...]) -> PolicyRule:
    verbs, groups, resources, *names = (tuple(part.split()) for part in parts)
    return PolicyRule(verbs, tuple("" if group == CORE else group for group in groups), resources, *names)


def _binding(name: str, subjects: tuple[tuple[str, str], ...]) -> Object:
    listed = [{"kind": kind, "apiGroup": GROUP, "name": subject} for kind, subject in subjects]
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    return {**_head("ClusterRoleBinding", name, LABELS), "roleRef": ref, "subjects": listed}


def _head(kind: str, name: str, labels: dict[str, str]) -> Object:
    meta = {"name": name, "labels": dict(labels), "annotations": dict(ANNOTATIONS)}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta}
