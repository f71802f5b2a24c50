"""What a Kubernetes API does, as cases that run on any cluster: `case_*(kube)`.

The sandbox must pass them; a real API server defines them. Cases hold in a cluster without nodes: no Pod needs to run.
"""

from collections.abc import Callable

from conformance import (
    kube_cases_kinds,
    kube_cases_lifecycle,
    kube_cases_objects,
    kube_cases_patches,
    kube_cases_refusals,
)
from conformance.kube_client import Kube

CASES: dict[str, Callable[[Kube], None]] = {
    name.removeprefix("case_"): found
    for module in (
        kube_cases_objects,
        kube_cases_patches,
        kube_cases_lifecycle,
        kube_cases_refusals,
        kube_cases_kinds,
    )
    for name, found in vars(module).items()
    if name.startswith("case_")
}
