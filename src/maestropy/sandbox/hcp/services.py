"""Serve stand-ins for the RP frontend and Clusters Service, with the documented form of their responses."""

import re

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from maestropy.sandbox.hcp import documents
from maestropy.sandbox.hcp.documents import Scenario

_TERM = re.compile(r"azure\.(\w+)\s*=\s*'([^']*)'")


def frontend(scenario: Scenario, *, now: str) -> Starlette:
    """Return a stand-in for the RP frontend."""

    async def cluster(request: Request) -> Response:
        if request.url.path.lower() != documents.ARM_ID.lower():
            error = {"code": "ResourceNotFound", "message": "The resource was not found.", "target": request.url.path}
            return JSONResponse({"error": error}, status_code=404)
        if "api-version" not in request.query_params:
            error = {"code": "InvalidApiVersionParameter", "message": "api-version is missing"}
            return JSONResponse({"error": error}, status_code=400)
        return JSONResponse(documents.arm_cluster(scenario, now=now))

    return Starlette(routes=[Route("/{path:path}", cluster)])


def clusters_service(scenario: Scenario, *, now: str) -> Starlette:
    """Return a stand-in for Clusters Service, at both of its root paths."""
    cluster = documents.cs_cluster(scenario, now=now)

    async def search(request: Request) -> Response:
        terms = dict(_TERM.findall(request.query_params.get("search", "")))
        items = [cluster] if all(cluster["azure"].get(name) == value for name, value in terms.items()) else []
        body = {"kind": "ClusterList", "page": 1, "size": len(items), "total": len(items), "items": items}
        return JSONResponse(body)

    async def part(request: Request) -> Response:
        cid, name = request.path_params["cid"], request.path_params.get("part", "")
        empty = {"kind": "List", "page": 1, "size": 0, "total": 0, "items": []}
        documents_by_name = {
            "": cluster,
            "status": {"kind": "ClusterStatus", "id": cid, **cluster["status"]},
            "provision_shard": documents.shard(),
            "inflight_checks": {**empty, "kind": "InflightCheckList"},
            "node_pools": {**empty, "kind": "NodePoolList"},
        }
        if cid != documents.CID or name not in documents_by_name:
            reason = f"Cluster '{cid}' not found"
            return JSONResponse({"kind": "Error", "id": "404", "code": "CLUSTERS-MGMT-404", "reason": reason}, 404)
        return JSONResponse(documents_by_name[name])

    roots = (documents.ROOT, "/api/clusters_mgmt/v1")
    routes = [Route(f"{root}/clusters", search) for root in roots]
    routes += [Route(f"{root}/clusters/{{cid}}", part) for root in roots]
    routes += [Route(f"{root}/clusters/{{cid}}/{{part}}", part) for root in roots]
    return Starlette(routes=routes)
