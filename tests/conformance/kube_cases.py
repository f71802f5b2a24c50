"""Conformance cases of a Kubernetes API that run on any cluster: `case_*(kube)`.

A real API server defines the results; the sandbox must give the same. No case needs a node on which Pods run.
"""

from collections.abc import Callable

from tests.conformance import (
    kube_cases_kinds,
    kube_cases_lifecycle,
    kube_cases_objects,
    kube_cases_patches,
    kube_cases_rejections,
)
from tests.conformance.kube_client import Kube

CASES: dict[str, Callable[[Kube], None]] = {
    name.removeprefix("case_"): case
    for module in (
        kube_cases_objects,
        kube_cases_patches,
        kube_cases_lifecycle,
        kube_cases_rejections,
        kube_cases_kinds,
    )
    for name, case in vars(module).items()
    if name.startswith("case_")
}
