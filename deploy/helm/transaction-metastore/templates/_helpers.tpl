{{/* The start of every object's name. */}}
{{- define "metastore.name" -}}
{{- $own := join "-" (compact (list .Release.Name .Values.nameOverride)) -}}
{{- .Values.fullnameOverride | default $own | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "metastore.labels" -}}
{{ include "metastore.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "metastore.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
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

{{/* Whether anything here works on the shared PostgreSQL. */}}
{{- define "metastore.isShared" -}}
{{- if or .Values.server.enabled (and .Values.sidecar.enabled (not .Values.sidecar.ownDatabase)) }}true{{ end -}}
{{- end -}}

{{/* What must hold before anything is rendered. */}}
{{- define "metastore.require" -}}
{{- if and (include "metastore.isShared" .) (not .Values.database.existingSecret) (not .Values.database.host) (not .Values.postgres.enabled) }}
{{- fail "database.existingSecret: name the Secret with the PostgreSQL URL, or give database.host and what belongs to it, or set postgres.enabled for a try." }}
{{- end }}
{{- if gt (len (compact (list .Values.database.existingSecret .Values.database.host (ternary "one" "" .Values.postgres.enabled)))) 1 }}
{{- fail "database.existingSecret, database.host, postgres.enabled: there is one database; set one of them." }}
{{- end }}
{{- if and .Values.database.host (not .Values.database.passwordSecret) }}
{{- fail "database.passwordSecret: name the Secret with the password of database.user." }}
{{- end }}
{{- if and .Values.database.adminSecret (not .Values.database.host) }}
{{- fail "database.adminSecret: the database is made where database.host says; set it." }}
{{- end }}
{{- if gt (len (compact (list .Values.configFile .Values.existingConfigMap .Values.existingConfigSecret))) 1 }}
{{- fail "configFile, existingConfigMap, existingConfigSecret: files of settings come from one place; set one of them." }}
{{- end }}
{{- if regexMatch "(?is)<name>[^<]*(password|secret)[^<]*</name>\\s*<value>\\s*[^<\\s]" .Values.configFile }}
{{- fail "configFile has a password or a secret key: whoever may read ConfigMaps would read it. Put the file into a Secret, existingConfigSecret." }}
{{- end }}
{{- if and .Values.postgres.enabled (not .Values.postgres.existingSecret) }}
{{- fail "postgres.existingSecret: name a Secret with the key `password`." }}
{{- end }}
{{- if not .Values.warehouse.uri }}
{{- fail "warehouse.uri: where managed tables are, for example s3a://bucket/warehouse." }}
{{- end }}
{{- if and .Values.server.enabled (not (include "metastore.isProtected" .)) (not .Values.allowInsecure) }}
{{- fail "Clients need not prove who they are: set tls.enabled with tls.clientCertificates=required, or allowInsecure=true if the network keeps strangers out." }}
{{- end }}
{{- if and .Values.tls.enabled (not .Values.tls.secretName) (not .Values.tls.certManager.enabled) }}
{{- fail "tls.secretName: name the Secret with tls.crt, tls.key and ca.crt, or set tls.certManager.enabled." }}
{{- end }}
{{- range $key, $value := merge (deepCopy .Values.settings) .Values.workers.sparkConf }}
{{- if or (regexMatch "(?i)(password|secret)" $key) (regexMatch "://[^/]*:[^/]*@" (toString $value)) }}
{{- fail (printf "%s is a secret: whoever may read ConfigMaps or pods would read it. Put it into the Secret settingsSecret, as a variable." $key) }}
{{- end }}
{{- end }}
{{- if and .Values.workers.enabled (not .Values.server.enabled) }}
{{- fail "workers.enabled: workers ask servers for their snapshots; set server.enabled, too." }}
{{- end }}
{{- if and .Values.sidecar.ownDatabase (not .Values.sidecar.existingClaim) }}
{{- fail "sidecar.existingClaim: name the claim of the volume that keeps the sidecar's own PostgreSQL." }}
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
{{- else if .Values.database.host }}
- name: METASTORE_CONF_METASTORE_DATABASE_URL
  value: {{ printf "postgresql://%s:%v/%s%s" .Values.database.host .Values.database.port .Values.database.name (ternary (printf "?sslmode=%s" .Values.database.sslMode) "" (ne .Values.database.sslMode "")) }}
- name: METASTORE_CONF_METASTORE_DATABASE_USER
  value: {{ .Values.database.user }}
- name: METASTORE_CONF_METASTORE_DATABASE_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ .Values.database.passwordSecret }}, key: {{ .Values.database.passwordKey }}}
{{- else }}
- name: METASTORE_CONF_METASTORE_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.database.existingSecret }}, key: {{ .Values.database.key }}}
{{- end }}
{{- if .Values.database.caSecret }}
- {name: PGSSLROOTCERT, value: /etc/metastore/database/ca.crt}
{{- end }}
{{- end -}}

{{- define "metastore.databaseMount" -}}
{{- if .Values.database.caSecret }}
- {name: database-ca, mountPath: /etc/metastore/database, readOnly: true}
{{- end }}
{{- end -}}

{{- define "metastore.databaseVolume" -}}
{{- if .Values.database.caSecret }}
- name: database-ca
  secret: {secretName: {{ .Values.database.caSecret }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- end -}}

{{/* Spark settings of the compaction jobs, name=value by commas. The driver is the worker's pod: executors belong to it,
     speak with its address, and go when it goes. */}}
{{- define "metastore.sparkConf" -}}
{{- $conf := dict -}}
{{- if eq .Values.workers.submit "k8s" }}
{{- $conf = dict
  "spark.driver.host" "$(POD_IP)"
  "spark.executor.instances" (toString .Values.workers.executors.instances)
  "spark.executor.cores" (toString .Values.workers.executors.cores)
  "spark.executor.memory" .Values.workers.executors.memory
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.driver.pod.name" "$(POD_NAME)"
  "spark.kubernetes.container.image" (include "metastore.workerImage" .)
  "spark.kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "spark.kubernetes.executor.podTemplateFile" "/etc/metastore/settings/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor" -}}
{{- end -}}
{{- with .Values.s3.endpoint }}
{{- $_ := set $conf "spark.hadoop.fs.s3a.endpoint" . }}
{{- $_ := set $conf "spark.hadoop.fs.s3a.path.style.access" (toString $.Values.s3.pathStyle) }}
{{- end -}}
{{- with .Values.s3.region }}{{ $_ := set $conf "spark.hadoop.fs.s3a.endpoint.region" . }}{{ end -}}
{{- $pairs := list -}}
{{- range $name, $value := merge (deepCopy .Values.workers.sparkConf) $conf }}{{ $pairs = append $pairs (printf "%s=%s" $name $value) }}{{ end -}}
{{- join "," $pairs -}}
{{- end -}}

{{- define "metastore.envFrom" -}}
{{- if .Values.settingsSecret }}
envFrom:
  - secretRef: {name: {{ .Values.settingsSecret }}}
{{- end }}
{{- end -}}

{{/* Variables of everything that reads the warehouse: the store's address and keys, and those of the values. */}}
{{- define "metastore.warehouseEnv" -}}
{{- with .Values.s3.endpoint }}
- {name: AWS_ENDPOINT_URL, value: {{ . | quote }}}
{{- end }}
{{- with .Values.s3.region }}
- {name: AWS_DEFAULT_REGION, value: {{ . | quote }}}
{{- end }}
{{- with .Values.s3.credentialsSecret }}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: {{ $.Values.s3.accessKeyKey }}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: {{ $.Values.s3.secretKeyKey }}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "metastore.extraMounts" -}}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "metastore.extraVolumes" -}}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Where the pods of a component may run: given server or workers of the values. */}}
{{- define "metastore.placement" -}}
{{- range $key := list "nodeSelector" "affinity" "tolerations" "priorityClassName" }}
{{- with get $ $key }}
{{ $key }}: {{- if kindIs "string" . }} {{ . }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What the pods of servers and workers have in common: given root, own (server or workers of the values), component. */}}
{{- define "metastore.pod" -}}
{{- include "metastore.pullSecrets" .root }}
securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
terminationGracePeriodSeconds: {{ add .own.drainSeconds 20 }}
topologySpreadConstraints:
{{- if .own.topologySpreadConstraints }}
  {{- toYaml .own.topologySpreadConstraints | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "metastore.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- include "metastore.placement" .own }}
volumes: {{- include "metastore.volumes" .root | nindent 2 }}
{{- with .own.initContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Metadata of these pods: the same arguments. */}}
{{- define "metastore.podMetadata" -}}
labels: {{- include "metastore.selector" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .own.podLabels }}{{ toYaml . | nindent 2 }}{{ end }}
annotations:
  checksum/settings: {{ printf "%s%s" (include "metastore.settings" .root) .root.Values.configFile | sha256sum }}
  {{- with .own.podAnnotations }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}

{{/* Files of settings, the chart's own last: what it sets wins. */}}
{{- define "metastore.configFiles" -}}
{{- if .Values.configFile }}
- --config=/etc/metastore/settings/hive-site.xml
{{- else if or .Values.existingConfigMap .Values.existingConfigSecret }}
{{- range .Values.configKeys }}
- --config=/etc/metastore/hive/{{ . }}
{{- end }}
{{- end }}
- --config=/etc/metastore/settings/settings.yaml
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
{{- if or .Values.existingConfigMap .Values.existingConfigSecret }}
- {name: hive, mountPath: /etc/metastore/hive, readOnly: true}
{{- end }}
{{- include "metastore.databaseMount" . }}
{{- include "metastore.extraMounts" . }}
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
{{- if .Values.existingConfigMap }}
- name: hive
  configMap: {name: {{ .Values.existingConfigMap }}}
{{- else if .Values.existingConfigSecret }}
- name: hive
  secret: {secretName: {{ .Values.existingConfigSecret }}}
{{- end }}
{{- include "metastore.databaseVolume" . }}
{{- include "metastore.extraVolumes" . }}
{{- end -}}

{{/* Of the HTTP port, for probes and scrapers. */}}
{{- define "metastore.httpScheme" -}}
{{- $own := get .Values.settings "metastore.http.use.SSL" | toString | lower -}}
{{- if and .Values.tls.enabled (ne $own "false") }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "metastore.probes" -}}
{{- $scheme := include "metastore.httpScheme" . -}}
{{- range $kind, $path := dict "startup" "/readyz" "liveness" "/livez" "readiness" "/readyz" }}
{{- with get $.Values.probes $kind }}
{{ $kind }}Probe:
  httpGet: {path: {{ $path }}, port: http, scheme: {{ $scheme }}}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "metastore.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
