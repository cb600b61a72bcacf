{{/* The name of the release, with the name of the chart if the release has another name. */}}
{{- define "reconciler.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "reconciler.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "reconciler.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "reconciler.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "reconciler.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The path of a key of an existing Secret in the container. */}}
{{- define "reconciler.secretFile" -}}
{{- $secret := get .context.Values.existingSecret .use -}}
{{- printf "/etc/reconciler/secrets/%s/%s" .use $secret.key -}}
{{- end -}}

{{/* Refuses settings that contradict the other values of the chart. */}}
{{- define "reconciler.checkSettings" -}}
{{- $settings := .Values.settings -}}
{{- if hasKey $settings "shard" -}}
{{- fail "settings.shard: the chart sets the shard of each pod; remove this setting, and set the value `shards`" -}}
{{- end -}}
{{- if hasKey $settings "cache" -}}
{{- fail "settings.cache: the chart sets the folder of the cache; remove this setting, and set the values `cache.type` and `cache.size`" -}}
{{- end -}}
{{- if dig "functions" "containers" (list) $settings -}}
{{- fail "settings.functions.containers: must be empty, because the pods contain no container engine; use functions that are built in or in `settings.functions.exec`, or render on Dask workers with `settings.rendering.dask`" -}}
{{- end -}}
{{- end -}}

{{/* The settings file: the values of the chart, and the value `settings`, which takes precedence. */}}
{{- define "reconciler.settings" -}}
{{- include "reconciler.checkSettings" . -}}
{{- $computed := dict "cache" "/var/cache/reconciler/data" "server" (dict "listen" "0.0.0.0:8080") -}}
{{- if .Values.existingSecret.credentials.name -}}
{{- $file := dict "credentials_file" (include "reconciler.secretFile" (dict "context" . "use" "credentials")) -}}
{{- $_ := set $computed "git" (dict "credentials" (list (dict "url" "*" "read" $file "write" $file))) -}}
{{- end -}}
{{- if .Values.existingSecret.webhooks.name -}}
{{- $_ := set $computed "webhooks" (dict "secret_file" (include "reconciler.secretFile" (dict "context" . "use" "webhooks"))) -}}
{{- end -}}
{{- if .Values.existingSecret.signing.name -}}
{{- $_ := set $computed "signing" (dict "format" "ssh" "key_file" (include "reconciler.secretFile" (dict "context" . "use" "signing"))) -}}
{{- end -}}
{{- if .Values.existingSecret.metrics.name -}}
{{- $_ := set $computed "metrics" (dict "token_file" (include "reconciler.secretFile" (dict "context" . "use" "metrics"))) -}}
{{- end -}}
{{- mergeOverwrite $computed (deepCopy .Values.settings) | toYaml -}}
{{- end -}}

{{/* The security context of all pods: the Pod Security Standard "restricted". */}}
{{- define "reconciler.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "reconciler.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The template of the pods that run passes. Arguments: context, component, args, and the shard of a writer. */}}
{{- define "reconciler.podTemplate" -}}
{{- with .context -}}
metadata:
  labels:
    {{- include "reconciler.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.component }}
    {{- with $.shard }}
    reconciler.dev/shard: {{ . | quote }}
    {{- end }}
  annotations:
    checksum/settings: {{ include "reconciler.settings" . | sha256sum }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "reconciler.podSecurityContext" . | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: reconciler
      image: {{ include "reconciler.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: {{ toJson $.args }}
      {{- with .Values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: http, containerPort: 8080, protocol: TCP}
      # The first pass of a process must end within periodSeconds x failureThreshold.
      startupProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        failureThreshold: {{ .Values.startupProbe.failureThreshold }}
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 30
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "reconciler.securityContext" . | nindent 8 }}
      volumeMounts:
        - {name: settings, mountPath: /etc/reconciler/settings, readOnly: true}
        - {name: cache, mountPath: /var/cache/reconciler}
        - {name: tmp, mountPath: /tmp}
        {{- range $use, $secret := .Values.existingSecret }}
        {{- if $secret.name }}
        - {name: secret-{{ $use }}, mountPath: /etc/reconciler/secrets/{{ $use }}, readOnly: true}
        {{- end }}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: settings
      configMap: {name: {{ include "reconciler.fullname" . }}-settings}
    {{- if or (eq .Values.cache.type "emptyDir") (ne $.component "writer") }}
    - name: cache
      emptyDir: {sizeLimit: {{ .Values.cache.size }}}
    {{- end }}
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 256Mi}
    {{- range $use, $secret := .Values.existingSecret }}
    {{- if $secret.name }}
    - name: secret-{{ $use }}
      secret: {secretName: {{ $secret.name }}, defaultMode: 0440}
    {{- end }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
