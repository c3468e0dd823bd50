{{/*
fleetline.name: what everything of this release is called.

  release "fleetline"  ->  fleetline
  release "prod"       ->  prod-fleetline
*/}}
{{- define "fleetline.name" -}}
{{- if contains .Chart.Name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" (.Release.Name | trunc 42 | trimSuffix "-") .Chart.Name }}
{{- end }}
{{- end }}

{{/*
fleetline.selectorLabels: name and instance, never anything else: selectors are immutable.
*/}}
{{- define "fleetline.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/*
fleetline.labels: the selector's, and chart, version, manager.
*/}}
{{- define "fleetline.labels" -}}
{{ include "fleetline.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/*
fleetline.serviceAccountName: the name given, else the release's if we create it, else default.
*/}}
{{- define "fleetline.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "fleetline.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{/*
fleetline.image: repository:tag, or repository@digest.

  tag: ""  digest: ""            ->  fleetline/fleetline:0.1.0
  digest: sha256:abc...          ->  fleetline/fleetline@sha256:abc...
*/}}
{{- define "fleetline.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/*
fleetline.scopeArgs: how far the operator looks.

  watchNamespaces: []       ->  --all-namespaces
  watchNamespaces: [a, b]   ->  --namespace=a  --namespace=b

rbac.yaml ranges over the same list, so the operator is never granted more
than it watches.
*/}}
{{- define "fleetline.scopeArgs" -}}
{{- range .Values.watchNamespaces }}
- --namespace={{ . }}
{{- else }}
- --all-namespaces
{{- end }}
{{- end }}

{{/*
fleetline.prometheusArgs, fleetline.mounts and fleetline.volumes: where Prometheus answers, and the files
with which it is asked. The operator mounts the one Secret that it needs; it may read none over the API.

  tokenSecret: {name: prometheus, key: token}  ->  --prometheus-token-file=/etc/fleetline/token/token
*/}}
{{- define "fleetline.prometheusArgs" -}}
- --prometheus-url={{ .Values.prometheus.url }}
- --pod-label={{ .Values.prometheus.podLabel }}
- --namespace-label={{ .Values.prometheus.namespaceLabel }}
{{- with .Values.prometheus.tokenSecret }}{{ if .name }}
- --prometheus-token-file=/etc/fleetline/token/{{ .key }}
{{- end }}{{ end }}
{{- with .Values.prometheus.caConfigMap }}{{ if .name }}
- --prometheus-ca-file=/etc/fleetline/ca/{{ .key }}
{{- end }}{{ end }}
{{- end }}
{{- define "fleetline.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.prometheus.tokenSecret.name }}
- {name: token, mountPath: /etc/fleetline/token, readOnly: true}
{{- end }}
{{- if .Values.prometheus.caConfigMap.name }}
- {name: ca, mountPath: /etc/fleetline/ca, readOnly: true}
{{- end }}
{{- end }}
{{- define "fleetline.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- with .Values.prometheus.tokenSecret }}{{ if .name }}
- name: token
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: {{ .key }}}], defaultMode: 0440}
{{- end }}{{ end }}
{{- with .Values.prometheus.caConfigMap }}{{ if .name }}
- name: ca
  configMap: {name: {{ .name }}, items: [{key: {{ .key }}, path: {{ .key }}}]}
{{- end }}{{ end }}
{{- end }}

{{/*
fleetline.podSecurity and fleetline.containerSecurity: the restricted Pod Security Standard.
*/}}
{{- define "fleetline.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "fleetline.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
