{{- define "flashweir.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "flashweir.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "flashweir.security" -}}
runAsNonRoot: true
runAsUser: 65532
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* Not empty where there are, or may come to be, several gateways: they share the limit. */ -}}
{{- define "flashweir.shares" -}}
{{- $scaled := dig "gateways" "scaleTargetRef" "" .Values.policy }}
{{- if or (gt (int .Values.gateway.replicas) 1) $scaled }}yes{{ end }}
{{- end }}
