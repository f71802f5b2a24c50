{{/* Names, labels and parts that several objects share. */}}

{{- define "maestro-server.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of what belongs to the release and not to a namespace. */}}
{{- define "maestro-server.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $joined | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Those of the Go Maestro's chart: the selector of a Deployment cannot change, and either chart can follow the other. */}}
{{- define "maestro-server.selectorLabels" -}}
app: maestro
app.kubernetes.io/name: {{ include "maestro-server.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "maestro-server.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{ include "maestro-server.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "maestro-server.image" -}}
{{- with .Values.image -}}
{{- $path := empty .registry | ternary .repository (printf "%s/%s" .registry .repository) -}}
{{- if .digest -}}
{{- printf "%s@%s" $path .digest -}}
{{- else -}}
{{- printf "%s:%s" $path (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "maestro-server.brokerSecret" -}}
{{- .Values.messageBroker.existingSecret | default .Values.messageBroker.secretName -}}
{{- end -}}

{{/* Flags for the database, of the server and of its migration. */}}
{{- define "maestro-server.databaseFlags" -}}
- --db-host-file=/secrets/rds/db.host
- --db-port-file=/secrets/rds/db.port
- --db-user-file=/secrets/rds/db.user
- --db-password-file=/secrets/rds/db.password
- --db-name-file=/secrets/rds/db.name
{{- if hasPrefix "verify-" .Values.database.sslMode }}
- --db-rootcert=/secrets/rds/db.ca_cert
{{- end }}
- {{ printf "--db-sslmode=%v" .Values.database.sslMode | quote }}
{{- with .Values.database.authMethod }}
- {{ printf "--db-auth-method=%v" . | quote }}
{{- end }}
- --alsologtostderr
- {{ printf "-v=%v" .Values.logging.klogV | quote }}
{{- with .Values.logging.format }}
- {{ printf "--log-format=%v" . | quote }}
{{- end }}
{{- end -}}

{{/* An empty selector of a NetworkPolicy means all namespaces. */}}
{{- define "maestro-server.selectsSome" -}}
{{- $selector := .selector | default dict -}}
{{- if not (or $selector.matchLabels $selector.matchExpressions) -}}
{{- fail (printf "networkPolicy.%s is empty and would admit every namespace: give it matchLabels or matchExpressions" .name) -}}
{{- end -}}
{{- end -}}

{{/* Each listener needs a port of its own. */}}
{{- define "maestro-server.checkPorts" -}}
{{- $names := dict -}}
{{- $ports := dict "server.http.bindPort" .Values.server.http.bindPort "server.grpc.bindPort" .Values.server.grpc.bindPort "server.metrics.bindPort" .Values.server.metrics.bindPort "server.healthCheck.bindPort" .Values.server.healthCheck.bindPort -}}
{{- if eq .Values.messageBroker.type "grpc" -}}
{{- $_ := set $ports "the port for agents (messageBroker.type=grpc)" 8091 -}}
{{- end -}}
{{- range $name, $port := $ports -}}
{{- $key := toString $port -}}
{{- if hasKey $names $key -}}
{{- fail (printf "%s and %s are both %s: give each listener a port of its own" (get $names $key) $name $key) -}}
{{- end -}}
{{- $_ := set $names $key $name -}}
{{- end -}}
{{- end -}}

{{/* Values that fit their types and not each other. */}}
{{- define "maestro-server.check" -}}
{{- $broker := .Values.messageBroker -}}
{{- include "maestro-server.checkPorts" . -}}
{{- if .Values.networkPolicy.enabled -}}
{{- include "maestro-server.selectsSome" (dict "name" "clients" "selector" .Values.networkPolicy.clients) -}}
{{- include "maestro-server.selectsSome" (dict "name" "monitoring" "selector" .Values.networkPolicy.monitoring) -}}
{{- end -}}
{{- if or (regexMatch "://[^@/?#]*:[^@?#]*@" .Values.database.listenDSN) (regexMatch "(?i)(^|[?&\\s])(ssl)?password\\s*=" .Values.database.listenDSN) -}}
{{- fail "database.listenDSN has a password, which everybody could read who may read pods: leave it out; that of db.password in database.secretName is used" -}}
{{- end -}}
{{- if and .Values.sources (eq .Values.server.grpc.authentication "mtls") -}}
{{- fail "sources are service accounts, whose tokens server.grpc.authentication=mtls does not read: set server.grpc.authentication=token, or empty sources and bind roles to the users of the certificates" -}}
{{- end -}}
{{- if and (eq $broker.type "grpc") $broker.grpc.agentIdentity (not $broker.grpc.tls.enabled) -}}
{{- fail "messageBroker.grpc.agentIdentity needs the certificates of agents: set messageBroker.grpc.tls.enabled=true" -}}
{{- end -}}
{{- if not .Values.server.grpc.tls.enabled -}}
{{- if eq .Values.server.grpc.authentication "mtls" -}}
{{- fail "server.grpc.authentication=mtls reads the certificates of sources, which they present over TLS only: set server.grpc.tls.enabled=true, with certFile, keyFile and clientCAFile" -}}
{{- else if .Values.server.grpc.authentication -}}
{{- fail "server.grpc.authentication would send tokens in the clear: set server.grpc.tls.enabled=true" -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.server.grpc.authentication "mtls") (not .Values.server.grpc.tls.clientCAFile) -}}
{{- fail (printf "server.grpc.authentication=mtls needs the CA that signs the certificates of sources: add it as ca.crt to the secret %s and set server.grpc.tls.clientCAFile=/secrets/maestro-grpc-cert/ca.crt" .Values.server.grpc.tls.secretName) -}}
{{- end -}}
{{- if and (eq .Values.database.authMethod "az-entra") (eq .Values.database.sslMode "disable") -}}
{{- fail "database.authMethod=az-entra would send its token without TLS: set database.sslMode=require, verify-ca or verify-full" -}}
{{- end -}}
{{- if and (eq .Values.server.http.authentication.type "jwt") (not .Values.server.http.authentication.jwksURL) -}}
{{- fail "server.http.authentication.type=jwt needs the public keys: set server.http.authentication.jwksURL" -}}
{{- end -}}
{{- with .Values.server.console.oidc -}}
{{- if .issuerURL -}}
{{- if not $.Values.server.console.enabled -}}
{{- fail "server.console.oidc.issuerURL needs the console: set server.console.enabled=true" -}}
{{- end -}}
{{- if ne $.Values.server.http.authentication.type "jwt" -}}
{{- fail "server.console.oidc needs REST with tokens of the provider: set server.http.authentication.type=jwt" -}}
{{- end -}}
{{- if or (not .clientID) (not .redirectURL) (not .clientSecretName) -}}
{{- fail "server.console.oidc needs clientID, clientSecretName and redirectURL" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $broker.type "pubsub") (not $broker.existingSecret) -}}
{{- range $field, $value := dict "projectID" $broker.pubsub.projectID "topics.sourceEvents" $broker.pubsub.topics.sourceEvents "topics.sourceBroadcast" $broker.pubsub.topics.sourceBroadcast "subscriptions.agentEvents" $broker.pubsub.subscriptions.agentEvents "subscriptions.agentBroadcast" $broker.pubsub.subscriptions.agentBroadcast -}}
{{- if not $value -}}
{{- fail (printf "messageBroker.type=pubsub needs messageBroker.pubsub.%s, or a secret with all of it in messageBroker.existingSecret" $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.database.cloudSqlProxy.enabled (not .Values.database.cloudSqlProxy.instanceConnectionName) -}}
{{- fail "database.cloudSqlProxy.enabled needs database.cloudSqlProxy.instanceConnectionName, as in project:region:instance" -}}
{{- end -}}
{{- end -}}

{{/* A Service for one port of a development database or broker. */}}
{{- define "maestro-server.developmentService" }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "maestro-server.labels" .root | nindent 4 }}
spec:
  selector: {{- toYaml .selector | nindent 4 }}
  ports:
    - {port: {{ .port }}, targetPort: {{ .target | default .port }}}
{{- end -}}
