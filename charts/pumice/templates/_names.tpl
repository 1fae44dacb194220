{{/* Name of the release's objects. */}}
{{- define "pumice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Name of objects without a namespace: two releases of one name in two namespaces do not share them. */}}
{{- define "pumice.clustername" -}}
{{- printf "%s-%s" .Release.Namespace (include "pumice.fullname" .) -}}
{{- end -}}

{{- define "pumice.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pumice.labels" -}}
{{ include "pumice.selector" . }}
app.kubernetes.io/component: {{ .Values.mode }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "pumice.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "pumice.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "pumice.tokenSecret" -}}
{{- default (printf "%s-page" (include "pumice.fullname" .)) .Values.page.tokenSecret -}}
{{- end -}}

{{/* Whether only this pod may reach the server: then it needs no token, and probes ask from inside. */}}
{{- define "pumice.probe" -}}
{{- if .root.Values.page.enabled -}}
httpGet:
  path: {{ .path }}
  port: page
  scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.page.tlsSecret "") }}
{{- else -}}
exec:
  command:
    - python
    - -c
    - from urllib.request import urlopen; urlopen('http://127.0.0.1:{{ .root.Values.page.port }}{{ .path }}', timeout=5)
{{- end -}}
{{- end -}}
