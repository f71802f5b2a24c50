{{/* Names, labels and parts that several objects share. */}}

{{- define "maestro-agent.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of what belongs to the release and not to a namespace. */}}
{{- define "maestro-agent.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $joined | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Those of the Go Maestro's chart: the selector of a Deployment cannot change, and either chart can follow the other. */}}
{{- define "maestro-agent.selectorLabels" -}}
app: maestro-agent
app.kubernetes.io/name: {{ include "maestro-agent.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "maestro-agent.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{ include "maestro-agent.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "maestro-agent.image" -}}
{{- with .Values.image -}}
{{- $path := empty .registry | ternary .repository (printf "%s/%s" .registry .repository) -}}
{{- if .digest -}}
{{- printf "%s@%s" $path .digest -}}
{{- else -}}
{{- printf "%s:%s" $path (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "maestro-agent.brokerSecret" -}}
{{- .Values.messageBroker.existingSecret | default (printf "maestro-agent-%s" .Values.messageBroker.type) -}}
{{- end -}}

{{- define "maestro-agent.account" -}}
- kind: ServiceAccount
  name: {{ .Values.serviceAccount.name | quote }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}

{{/* An empty selector of a NetworkPolicy means all namespaces. */}}
{{- define "maestro-agent.selectsSome" -}}
{{- $selector := .selector | default dict -}}
{{- if not (or $selector.matchLabels $selector.matchExpressions) -}}
{{- fail (printf "networkPolicy.%s is empty and would admit every namespace: give it matchLabels or matchExpressions" .name) -}}
{{- end -}}
{{- end -}}

{{/* Values that fit their types and not each other. */}}
{{- define "maestro-agent.check" -}}
{{- $broker := .Values.messageBroker -}}
{{- if and (eq $broker.type "grpc") (not $broker.existingSecret) (not $broker.grpc.url) -}}
{{- fail "messageBroker.grpc.url is empty: give the address of the server for agents, as in maestro-agents.example:8091" -}}
{{- end -}}
{{- if ne (empty $broker.grpc.tls.clientCert) (empty $broker.grpc.tls.clientKey) -}}
{{- fail "messageBroker.grpc.tls.clientCert and clientKey belong together: give both or none" -}}
{{- end -}}
{{- if and $broker.grpc.tls.clientCert (not $broker.grpc.tls.caCert) -}}
{{- fail "messageBroker.grpc.tls.clientCert needs messageBroker.grpc.tls.caCert, by which the agent knows the server" -}}
{{- end -}}
{{- if .Values.networkPolicy.enabled -}}
{{- include "maestro-agent.selectsSome" (dict "name" "monitoring" "selector" .Values.networkPolicy.monitoring) -}}
{{- end -}}
{{- if ne (empty $broker.mqtt.clientCert) (empty $broker.mqtt.clientKey) -}}
{{- fail "messageBroker.mqtt.clientCert and clientKey belong together: give both or none" -}}
{{- end -}}
{{- if and (eq $broker.type "mqtt") (not $broker.existingSecret) (not $broker.mqtt.host) -}}
{{- fail "messageBroker.mqtt.host is empty: give the host of the MQTT broker" -}}
{{- end -}}
{{- if and (eq $broker.type "pubsub") (not $broker.existingSecret) -}}
{{- range $field, $value := dict "projectID" $broker.pubsub.projectID "topics.agentEvents" $broker.pubsub.topics.agentEvents "topics.agentBroadcast" $broker.pubsub.topics.agentBroadcast -}}
{{- if not $value -}}
{{- fail (printf "messageBroker.type=pubsub needs messageBroker.pubsub.%s, or a secret with all of it in messageBroker.existingSecret" $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled (not .Values.podMonitor.tokenSecret.name) -}}
{{- fail "podMonitor.enabled needs the token that reads the metrics: set podMonitor.tokenSecret.name" -}}
{{- end -}}
{{- if and .Values.rbac.clusterAdmin .Values.rbac.rules -}}
{{- fail "rbac.rules add nothing to cluster-admin: set rbac.clusterAdmin=false" -}}
{{- end -}}
{{- end -}}
