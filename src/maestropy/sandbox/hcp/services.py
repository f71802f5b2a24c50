"""Stand-ins for the RP frontend and Clusters Service: closed services, so only their documented shapes are played."""

import re

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from maestropy.sandbox.hcp import cast
from maestropy.sandbox.hcp.cast import Scenario

_TERM = re.compile(r"azure\.(\w+)\s*=\s*'([^']*)'")


def frontend(scenario: Scenario, *, now: str) -> Starlette:
    """Answer as the RP frontend does."""

    async def cluster(request: Request) -> Response:
        if request.url.path.lower() != cast.ARM_ID.lower():
            error = {"code": "ResourceNotFound", "message": "The resource was not found.", "target": request.url.path}
            return JSONResponse({"error": error}, status_code=404)
        if "api-version" not in request.query_params:
            error = {"code": "InvalidApiVersionParameter", "message": "api-version is missing"}
            return JSONResponse({"error": error}, status_code=400)
        return JSONResponse(cast.arm_cluster(scenario, now=now))

    return Starlette(routes=[Route("/{path:path}", cluster)])


def clusters_service(scenario: Scenario, *, now: str) -> Starlette:
    """Answer as Clusters Service does, at both of its roots."""
    found = cast.cs_cluster(scenario, now=now)

    async def search(request: Request) -> Response:
        wanted = dict(_TERM.findall(request.query_params.get("search", "")))
        items = [found] if all(found["azure"].get(name) == value for name, value in wanted.items()) else []
        body = {"kind": "ClusterList", "page": 1, "size": len(items), "total": len(items), "items": items}
        return JSONResponse(body)

    async def part(request: Request) -> Response:
        cid, name = request.path_params["cid"], request.path_params.get("part", "")
        empty = {"kind": "List", "page": 1, "size": 0, "total": 0, "items": []}
        parts = {
            "": found,
            "status": {"kind": "ClusterStatus", "id": cid, **found["status"]},
            "provision_shard": cast.shard(),
            "inflight_checks": {**empty, "kind": "InflightCheckList"},
            "node_pools": {**empty, "kind": "NodePoolList"},
        }
        if cid != cast.CID or name not in parts:
            reason = f"Cluster '{cid}' not found"
            return JSONResponse({"kind": "Error", "id": "404", "code": "CLUSTERS-MGMT-404", "reason": reason}, 404)
        return JSONResponse(parts[name])

    roots = (cast.ROOT, "/api/clusters_mgmt/v1")
    routes = [Route(f"{root}/clusters", search) for root in roots]
    routes += [Route(f"{root}/clusters/{{cid}}", part) for root in roots]
    routes += [Route(f"{root}/clusters/{{cid}}/{{part}}", part) for root in roots]
    return Starlette(routes=routes)
