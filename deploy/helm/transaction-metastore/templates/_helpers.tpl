{{- define "metastore.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "metastore.labels" -}}
{{ include "metastore.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "metastore.selector" -}}
app.kubernetes.io/name: transaction-metastore
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "metastore.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "metastore.workerImage" -}}
{{ .Values.image.workerRepository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "metastore.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "metastore.name" .) }}
{{- end -}}

{{- define "metastore.workerServiceAccount" -}}
{{ .Values.serviceAccount.workerName | default (printf "%s-worker" (include "metastore.name" .)) }}
{{- end -}}

{{- define "metastore.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "metastore.name" .)) }}
{{- end -}}

{{- define "metastore.isProtected" -}}
{{- if and .Values.tls.enabled (eq .Values.tls.clientCertificates "required") }}true{{ end -}}
{{- end -}}

{{/* What must hold before anything is rendered. */}}
{{- define "metastore.require" -}}
{{- if and (not .Values.database.existingSecret) (not .Values.postgres.enabled) }}
{{- fail "database.existingSecret: name the Secret with the PostgreSQL URL, or set postgres.enabled for a try." }}
{{- end }}
{{- if and .Values.postgres.enabled (not .Values.postgres.existingSecret) }}
{{- fail "postgres.existingSecret: name a Secret with the key `password`." }}
{{- end }}
{{- if not .Values.warehouse.uri }}
{{- fail "warehouse.uri: where managed tables are, for example s3a://bucket/warehouse." }}
{{- end }}
{{- if and (not (include "metastore.isProtected" .)) (not .Values.allowInsecure) }}
{{- fail "Clients need not prove who they are: set tls.enabled with tls.clientCertificates=required, or allowInsecure=true if the network keeps strangers out." }}
{{- end }}
{{- if and .Values.tls.enabled (not .Values.tls.secretName) (not .Values.tls.certManager.enabled) }}
{{- fail "tls.secretName: name the Secret with tls.crt, tls.key and ca.crt, or set tls.certManager.enabled." }}
{{- end }}
{{- end -}}

{{/* The settings file that servers and workers share. */}}
{{- define "metastore.settings" -}}
{{- $own := dict
  "hive.metastore.thrift.bind.host" "0.0.0.0"
  "hive.metastore.port" .Values.service.port
  "metastore.http.port" .Values.service.httpPort
  "hive.metastore.warehouse.dir" .Values.warehouse.uri
  "metastore.server.drain.timeout" (printf "%ds" (int .Values.server.drainSeconds))
  "metastore.log.format" "json" -}}
{{- if not (include "metastore.isProtected" .) }}{{ $_ := set $own "metastore.server.allow.insecure" true }}{{ end -}}
{{- if .Values.tls.enabled }}
{{- $_ := set $own "hive.metastore.use.SSL" true }}
{{- $_ := set $own "hive.metastore.keystore.path" "/etc/metastore/tls/tls.crt,/etc/metastore/tls/tls.key" }}
{{- $_ := set $own "hive.metastore.truststore.path" "/etc/metastore/tls/ca.crt" }}
{{- $_ := set $own "metastore.ssl.client.certificates" .Values.tls.clientCertificates }}
{{- end -}}
{{- toYaml (merge (deepCopy .Values.settings) $own) -}}
{{- end -}}

{{- define "metastore.databaseEnv" -}}
{{- if .Values.postgres.enabled }}
- name: METASTORE_CONF_METASTORE_DATABASE_URL
  value: postgresql://{{ include "metastore.name" . }}-postgres:5432/metastore
- name: METASTORE_CONF_METASTORE_DATABASE_USER
  value: metastore
- name: METASTORE_CONF_METASTORE_DATABASE_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ .Values.postgres.existingSecret }}, key: password}
{{- else }}
- name: METASTORE_CONF_METASTORE_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.database.existingSecret }}, key: {{ .Values.database.key }}}
{{- end }}
{{- end -}}

{{- define "metastore.envFrom" -}}
{{- if .Values.settingsSecret }}
envFrom:
  - secretRef: {name: {{ .Values.settingsSecret }}}
{{- end }}
{{- end -}}

{{- define "metastore.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "metastore.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "metastore.mounts" -}}
- {name: settings, mountPath: /etc/metastore/settings, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /etc/metastore/tls, readOnly: true}
{{- end }}
{{- if .Values.warehouse.existingClaim }}
- {name: warehouse, mountPath: /warehouse}
{{- end }}
{{- end -}}

{{- define "metastore.volumes" -}}
- name: settings
  configMap: {name: {{ include "metastore.name" . }}}
- name: tmp
  emptyDir: {}
{{- if .Values.tls.enabled }}
- name: tls
  secret: {secretName: {{ include "metastore.tlsSecret" . }}}
{{- end }}
{{- if .Values.warehouse.existingClaim }}
- name: warehouse
  persistentVolumeClaim: {claimName: {{ .Values.warehouse.existingClaim }}}
{{- end }}
{{- end -}}

{{- define "metastore.probes" -}}
{{- $scheme := ternary "HTTPS" "HTTP" .Values.tls.enabled -}}
startupProbe:
  httpGet: {path: /readyz, port: http, scheme: {{ $scheme }}}
  periodSeconds: 1
  failureThreshold: 300
livenessProbe:
  httpGet: {path: /livez, port: http, scheme: {{ $scheme }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http, scheme: {{ $scheme }}}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{- define "metastore.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
