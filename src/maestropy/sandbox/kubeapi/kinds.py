"""Which kinds does the sandbox serve, and how does each behave in general?

A table of values and the registry that finds an entry by path or by kind. It holds no objects; custom kinds are put in
and taken out by whoever watches CustomResourceDefinitions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maestropy.sandbox.kubeapi import builtin_types
from maestropy.sandbox.kubeapi.schema import ANY, Schema

WRITABLE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind in one version, with what generic handlers need to know about it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    """Whether `/status` exists, so that ordinary writes cannot touch the status."""
    has_generation: bool = False
    scale: tuple[str, str, str] | None = None
    """Paths of the replicas in spec and status and of the selector, where `/scale` exists."""
    verbs: tuple[str, ...] = WRITABLE
    schema: Schema = ANY
    definition: dict[str, object] | None = None
    """The `openAPIV3Schema` of a custom kind."""
    storage_version: str = ""
    singular: str = ""
    list_kind: str = ""
    selectable: tuple[str, ...] = ()
    """Paths that field selectors may name besides the usual ones."""
    custom: bool = False

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> tuple[str, str]:
        """Where objects of all versions of this kind are kept."""
        return self.group, self.plural

    @property
    def qualified(self) -> str:
        """The resource as messages name it: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind as validation messages name it: `Deployment.apps`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


# group, version, kind, plural, short names, flags: cluster-scoped, status, generation, x scale, all
_TABLE = """
-                            v1 Namespace                        namespaces                        ns     cs
-                            v1 Pod                              pods                              po     sga
-                            v1 ConfigMap                        configmaps                        cm     -
-                            v1 Secret                           secrets                           -      -
-                            v1 Service                          services                          svc    sa
-                            v1 ServiceAccount                   serviceaccounts                   sa     -
-                            v1 Event                            events                            ev     -
-                            v1 PersistentVolumeClaim            persistentvolumeclaims            pvc    s
-                            v1 PersistentVolume                 persistentvolumes                 pv     cs
-                            v1 Node                             nodes                             no     cs
-                            v1 Endpoints                        endpoints                         ep     -
-                            v1 LimitRange                       limitranges                       limits -
-                            v1 ResourceQuota                    resourcequotas                    quota  s
-                            v1 ReplicationController            replicationcontrollers            rc     sgxa
-                            v1 PodTemplate                      podtemplates                      -      g
apps                         v1 Deployment                       deployments                       deploy sgxa
apps                         v1 ReplicaSet                       replicasets                       rs     sgxa
apps                         v1 StatefulSet                      statefulsets                      sts    sgxa
apps                         v1 DaemonSet                        daemonsets                        ds     sga
apps                         v1 ControllerRevision               controllerrevisions               -      -
batch                        v1 Job                              jobs                              -      sga
batch                        v1 CronJob                          cronjobs                          cj     sga
autoscaling                  v2 HorizontalPodAutoscaler          horizontalpodautoscalers          hpa    sa
rbac.authorization.k8s.io    v1 Role                             roles                             -      -
rbac.authorization.k8s.io    v1 RoleBinding                      rolebindings                      -      -
rbac.authorization.k8s.io    v1 ClusterRole                      clusterroles                      -      c
rbac.authorization.k8s.io    v1 ClusterRoleBinding               clusterrolebindings               -      c
coordination.k8s.io          v1 Lease                            leases                            -      -
policy                       v1 PodDisruptionBudget              poddisruptionbudgets              pdb    sg
networking.k8s.io            v1 Ingress                          ingresses                         ing    sg
networking.k8s.io            v1 IngressClass                     ingressclasses                    -      cg
networking.k8s.io            v1 NetworkPolicy                    networkpolicies                   netpol g
discovery.k8s.io             v1 EndpointSlice                    endpointslices                    -      g
events.k8s.io                v1 Event                            events                            ev     -
scheduling.k8s.io            v1 PriorityClass                    priorityclasses                   pc     cg
storage.k8s.io               v1 StorageClass                     storageclasses                    sc     c
storage.k8s.io               v1 CSIDriver                        csidrivers                        -      c
admissionregistration.k8s.io v1 MutatingWebhookConfiguration     mutatingwebhookconfigurations     -      cg
admissionregistration.k8s.io v1 ValidatingWebhookConfiguration   validatingwebhookconfigurations   -      cg
admissionregistration.k8s.io v1 ValidatingAdmissionPolicy        validatingadmissionpolicies       -      csg
admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings -      cg
apiextensions.k8s.io         v1 CustomResourceDefinition         customresourcedefinitions         crd,crds csg
apiregistration.k8s.io       v1 APIService                       apiservices                       -      cs
"""

# Asked by POST and answered at once; nothing is kept.
_REVIEWS = (
    ("authentication.k8s.io", "TokenReview", "tokenreviews", False),
    ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", False),
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    ("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
)
_SCALE = ("spec.replicas", "status.replicas", "status.selector")


def _read(line: str) -> Kind:
    group, version, kind, plural, short, flags = line.split()
    group = "" if group == "-" else group
    return Kind(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        short_names=() if short == "-" else tuple(short.split(",")),
        namespaced="c" not in flags,
        has_status="s" in flags,
        has_generation="g" in flags,
        scale=_SCALE if "x" in flags else None,
        categories=("all",) if "a" in flags else (),
        storage_version=version,
        schema=builtin_types.schema_of(group, version, kind),
    )


def builtin() -> tuple[Kind, ...]:
    """Return the kinds every cluster has."""
    stored = [_read(line) for line in _TABLE.strip().splitlines()]
    reviews = [
        Kind(group=group, version="v1", kind=kind, plural=plural, namespaced=scoped, verbs=("create",))
        for group, kind, plural, scoped in _REVIEWS
    ]
    return (*stored, *reviews)


class Registry:
    """The kinds served now, found by path and by kind."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())

    def add(self, kind: Kind) -> None:
        """Serve `kind` from now on, in place of an older definition of it."""
        self._by_path[kind.group, kind.version, kind.plural] = kind

    def replace_custom(self, group: str, plural: str, kinds: Iterable[Kind]) -> None:
        """Serve exactly `kinds` for the custom resource `plural.group`; none at all ends its service."""
        gone = [path for path, kind in self._by_path.items() if kind.custom and kind.resource == (group, plural)]
        for path in gone:
            del self._by_path[path]
        for kind in kinds:
            self.add(kind)

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind at a path."""
        return self._by_path.get((group, version, plural))

    def of_resource(self, group: str, plural: str) -> Kind | None:
        """Return the kind in the version it is stored in."""
        for kind in self._by_path.values():
            if kind.resource == (group, plural) and kind.version == kind.storage_version:
                return kind
        return None

    def named(self, group: str, kind_name: str) -> Kind | None:
        """Return the kind called `kind_name` in any version of `group`."""
        for kind in self._by_path.values():
            if kind.group == group and kind.kind == kind_name:
                return kind
        return None

    def stored(self) -> list[Kind]:
        """Return every kind whose objects are kept, once."""
        return [kind for kind in self._by_path.values() if kind.version == kind.storage_version]
