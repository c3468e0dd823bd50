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
