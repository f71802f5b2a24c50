"""Values that the charts refuse, each with a part of what Helm says."""

from collections.abc import Mapping
from typing import Any

SERVER, AGENT = "maestro-server", "maestro-agent"
BAD: dict[str, tuple[str, Mapping[str, Any], str]] = {
    "misspelt": (SERVER, {"replica": 2}, "replica"),
    "misspelt-inside": (SERVER, {"database": {"sslmode": "disable"}}, "sslmode"),
    "broker": (SERVER, {"messageBroker": {"type": "kafka"}}, "messageBroker"),
    "port": (SERVER, {"server": {"http": {"bindPort": 70000}}}, "bindPort"),
    "replicas": (SERVER, {"replicas": "two"}, "replicas"),
    "timeout": (SERVER, {"server": {"httpReadTimeout": "5 seconds"}}, "httpReadTimeout"),
    "flag": (SERVER, {"server": {"extraArgs": ["workers=2"]}}, "extraArgs"),
    "source": (SERVER, {"sources": [{"name": "a"}]}, "serviceAccount"),
    "identity-without-tls": (
        SERVER,
        {"messageBroker": {"type": "grpc", "grpc": {"agentIdentity": "exact"}}},
        "set messageBroker.grpc.tls.enabled=true",
    ),
    "token-without-tls": (
        SERVER,
        {"server": {"grpc": {"authentication": "token"}}},
        "set server.grpc.tls.enabled=true",
    ),
    "certificates-without-tls": (
        SERVER,
        {"server": {"grpc": {"authentication": "mtls"}}},
        "mtls reads the certificates of sources, which they present over TLS only: set server.grpc.tls.enabled=true",
    ),
    "certificates-without-authority": (
        SERVER,
        {"server": {"grpc": {"authentication": "mtls", "tls": {"enabled": True, "clientCAFile": ""}}}},
        "add it as ca.crt to the secret maestro-grpc-cert and set server.grpc.tls.clientCAFile=/secrets/",
    ),
    "entra-without-tls": (
        SERVER,
        {"database": {"authMethod": "az-entra", "sslMode": "disable"}},
        "az-entra would send its token without TLS: set database.sslMode=require",
    ),
    "jwt-without-keys": (
        SERVER,
        {"server": {"http": {"authentication": {"type": "jwt"}}}},
        "set server.http.authentication.jwksURL",
    ),
    "login-without-jwt": (
        SERVER,
        {"server": {"console": {"enabled": True, "oidc": {"issuerURL": "https://login.example"}}}},
        "set server.http.authentication.type=jwt",
    ),
    "login-without-console": (
        SERVER,
        {"server": {"console": {"oidc": {"issuerURL": "https://login.example"}}}},
        "set server.console.enabled=true",
    ),
    "pubsub-without-names": (SERVER, {"messageBroker": {"type": "pubsub"}}, "needs messageBroker.pubsub.projectID"),
    "cloud-sql": (SERVER, {"database": {"cloudSqlProxy": {"enabled": True}}}, "instanceConnectionName"),
    "consumer": (AGENT, {"consumerName": ""}, "consumerName"),
    "agent-broker": (AGENT, {"messageBroker": {"type": "nats"}}, "messageBroker"),
    "half-a-certificate": (
        AGENT,
        {"messageBroker": {"grpc": {"tls": {"clientCert": "/a"}}}},
        "clientCert and clientKey belong together",
    ),
    "half-a-certificate-of-mqtt": (
        AGENT,
        {"messageBroker": {"type": "mqtt", "mqtt": {"clientKey": "/a"}}},
        "messageBroker.mqtt.clientCert and clientKey belong together",
    ),
    "no-address": (AGENT, {"messageBroker": {"type": "grpc", "grpc": {"url": ""}}}, "messageBroker.grpc.url is empty"),
    "rules-of-an-admin": (AGENT, {"rbac": {"rules": [{"verbs": ["get"]}]}}, "set rbac.clusterAdmin=false"),
    "metrics-without-token": (AGENT, {"podMonitor": {"enabled": True}}, "set podMonitor.tokenSecret.name"),
}


BAD |= {
    "password-to-listen": (
        SERVER,
        {"database": {"listenDSN": "postgresql://me:secret@db/m"}},
        "listenDSN has a password",
    ),
    "password-in-query": (SERVER, {"database": {"listenDSN": "postgresql://db/m?password=x"}}, "leave it out"),
    "password-in-words": (
        SERVER,
        {"database": {"listenDSN": "host=db password = x"}},
        "db.password in database.secretName",
    ),
    "equal-ports": (
        SERVER,
        {"server": {"http": {"bindPort": 8080}}},
        "server.http.bindPort and server.metrics.bindPort are both 8080",
    ),
    "port-of-agents": (
        SERVER,
        {"messageBroker": {"type": "grpc"}, "server": {"grpc": {"bindPort": 8091}}},
        "server.grpc.bindPort and the port for agents (messageBroker.type=grpc) are both 8091",
    ),
    "sources-with-certificates": (
        SERVER,
        {
            "sources": [{"name": "a", "serviceAccount": "a", "namespace": "a"}],
            "server": {"grpc": {"authentication": "mtls", "tls": {"enabled": True, "clientCAFile": "/a"}}},
        },
        "set server.grpc.authentication=token",
    ),
    "every-client": (
        SERVER,
        {"networkPolicy": {"enabled": True, "clients": {"matchLabels": None}}},
        "networkPolicy.clients is empty and would admit every namespace",
    ),
    "no-client-selector": (
        SERVER,
        {"networkPolicy": {"enabled": True, "clients": None}},
        "networkPolicy.clients is empty",
    ),
    "every-reader": (
        AGENT,
        {"networkPolicy": {"enabled": True, "monitoring": {"matchLabels": None}}},
        "networkPolicy.monitoring is empty",
    ),
    "host-of-route": (SERVER, {"route": {"enabled": True, "host": "a b"}}, "host"),
    "allowed-hosts": (SERVER, {"server": {"http": {"allowedHosts": ["a b"]}}}, "allowedHosts"),
    "hostname": (SERVER, {"server": {"hostname": "a\n- --enable-db-debug"}}, "hostname"),
    "image": (SERVER, {"image": {"registry": "a #"}}, "registry"),
    "secret": (SERVER, {"database": {"secretName": "a: b"}}, "secretName"),
    "keys": (SERVER, {"server": {"http": {"authentication": {"jwksURL": "https://a b"}}}}, "jwksURL"),
    "audience": (SERVER, {"server": {"http": {"authentication": {"audience": "a\nb"}}}}, "audience"),
    "broker-address": (AGENT, {"messageBroker": {"grpc": {"url": "a b:1"}}}, "url"),
    "client-id": (AGENT, {"cloudeventsClientId": "a\n- --b"}, "cloudeventsClientId"),
    "argument": (AGENT, {"extraArgs": ["--a=\n- b"]}, "extraArgs"),
}
