"""The kinds that the sandbox serves, and the registry that finds them by path or by kind.

It holds no objects. The controller of CustomResourceDefinitions adds and removes custom kinds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maestropy.sandbox.kubeapi.schemas import builtin_types
from maestropy.sandbox.kubeapi.schemas.schema import ANY, Schema

WRITABLE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """One kind in one version, with the properties that generic handlers need."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    """Whether the status subresource exists: writes to the main resource ignore the status then."""
    has_generation: bool = False
    scale: tuple[str, str, str] | None = None
    """Paths of the replicas in spec and status and of the selector, if the scale subresource exists."""
    verbs: tuple[str, ...] = WRITABLE
    schema: Schema = ANY
    definition: dict[str, object] | None = None
    """The `openAPIV3Schema` of a custom kind."""
    storage_version: str = ""
    singular: str = ""
    list_kind: str = ""
    selectable: tuple[str, ...] = ()
    """Additional paths for field selectors."""
    is_custom: bool = False

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> tuple[str, str]:
        """Group and plural: the storage key, shared by all versions of the kind."""
        return self.group, self.plural

    @property
    def qualified(self) -> str:
        """The resource as messages print it: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind as validation messages print it: `Deployment.apps`."""
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

# Reviews are answered at once and not stored.
_REVIEWS = (
    ("authentication.k8s.io", "TokenReview", "tokenreviews", False),
    ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", False),
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    ("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
)
_SCALE = ("spec.replicas", "status.replicas", "status.selector")


def _read(line: str) -> ServedKind:
    group, version, kind, plural, short, flags = line.split()
    group = "" if group == "-" else group
    return ServedKind(
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


def builtin() -> tuple[ServedKind, ...]:
    """Return the built-in kinds."""
    stored = [_read(line) for line in _TABLE.strip().splitlines()]
    reviews = [
        ServedKind(group=group, version="v1", kind=kind, plural=plural, namespaced=scoped, verbs=("create",))
        for group, kind, plural, scoped in _REVIEWS
    ]
    return (*stored, *reviews)


class Registry:
    """The kinds that are served now."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._by_path.values())

    def add(self, kind: ServedKind) -> None:
        """Serve `kind`, replacing an earlier definition."""
        self._by_path[kind.group, kind.version, kind.plural] = kind

    def replace_custom(self, group: str, plural: str, kinds: Iterable[ServedKind]) -> None:
        """Serve exactly `kinds` for the custom resource `plural.group`; an empty list removes it."""
        removed = [path for path, kind in self._by_path.items() if kind.is_custom and kind.resource == (group, plural)]
        for path in removed:
            del self._by_path[path]
        for kind in kinds:
            self.add(kind)

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind at a path."""
        return self._by_path.get((group, version, plural))

    def of_resource(self, group: str, plural: str) -> ServedKind | None:
        """Return the kind in its storage version."""
        for kind in self._by_path.values():
            if kind.resource == (group, plural) and kind.version == kind.storage_version:
                return kind
        return None

    def named(self, group: str, kind_name: str) -> ServedKind | None:
        """Return the kind `kind_name` in any version of `group`."""
        for kind in self._by_path.values():
            if kind.group == group and kind.kind == kind_name:
                return kind
        return None

    def stored(self) -> list[ServedKind]:
        """Return every stored kind once."""
        return [kind for kind in self._by_path.values() if kind.version == kind.storage_version]
