{{/* Name of all objects: the names of release and chart, or the release's alone if it contains the chart's. */}}
{{- define "addon-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Name of cluster-scoped objects, which operators of several namespaces must not share. */}}
{{- define "addon-operator.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "addon-operator.fullname" .) -}}
{{- end -}}

{{- define "addon-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "addon-operator.labels" -}}
{{ include "addon-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- include "addon-operator.commonLabels" . }}
{{- end -}}

{{/* Labels of the user for all objects, each on a line of its own; the chart's own are not overridden. */}}
{{- define "addon-operator.commonLabels" -}}
{{- range $name, $value := .Values.commonLabels }}
{{ $name }}: {{ $value | quote }}
{{- end -}}
{{- end -}}

{{- define "addon-operator.serviceAccount" -}}
{{- default (include "addon-operator.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "addon-operator.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Service in front of the admission server. The certificate is made for its name. */}}
{{- define "addon-operator.webhookService" -}}
{{- include "addon-operator.fullname" . }}-webhook
{{- end -}}

{{/* Name of both webhook configurations. */}}
{{- define "addon-operator.webhookConfiguration" -}}
addon-operator-{{ .Release.Namespace }}
{{- end -}}

{{/* What the operator reads to know the variables of a pod's envFrom. */}}
{{- define "addon-operator.envFromSources" -}}
{{- $sources := list -}}
{{- if .Values.podPresets.readConfigMaps }}{{ $sources = append $sources "configmaps" }}{{ end -}}
{{- if .Values.podPresets.readSecrets }}{{ $sources = append $sources "secrets" }}{{ end -}}
{{- join "," $sources -}}
{{- end -}}

{{- define "addon-operator.certificateSecret" -}}
{{- if eq .Values.webhook.certificates.source "secret" -}}
{{- required "webhook.certificates.secretName is needed for the source \"secret\": name a Secret with tls.crt, tls.key and ca.crt" .Values.webhook.certificates.secretName -}}
{{- else -}}
{{- include "addon-operator.fullname" . }}-webhook-tls
{{- end -}}
{{- end -}}

{{/* Whether admission runs as its own Deployment. */}}
{{- define "addon-operator.isSeparate" -}}
{{- if and .Values.podPresets.enabled .Values.admission.separate -}}true{{- end -}}
{{- end -}}

{{/* The following take a dict: "root" is the chart's scope, and "part" is "operator" or "admission", whose pod it is. */}}

{{/* Whether the part admits pods. */}}
{{- define "addon-operator.admits" -}}
{{- $isSeparate := eq (include "addon-operator.isSeparate" .root) "true" -}}
{{- if and .root.Values.podPresets.enabled (eq $isSeparate (eq .part "admission")) -}}true{{- end -}}
{{- end -}}

{{/* The part whose pods admit pods. */}}
{{- define "addon-operator.admittingPart" -}}
{{- include "addon-operator.isSeparate" . | empty | ternary "operator" "admission" -}}
{{- end -}}

{{- define "addon-operator.selectorLabelsOf" -}}
{{- if eq .part "admission" -}}
app.kubernetes.io/name: {{ printf "%s-admission" (default .root.Chart.Name .root.Values.nameOverride) | trunc 63 | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- else -}}
{{- include "addon-operator.selectorLabels" .root -}}
{{- end -}}
{{- end -}}

{{- define "addon-operator.serviceAccountOf" -}}
{{- if eq .part "admission" -}}
{{- default (printf "%s-admission" (include "addon-operator.fullname" .root)) .root.Values.admission.serviceAccount.name -}}
{{- else -}}
{{- include "addon-operator.serviceAccount" .root -}}
{{- end -}}
{{- end -}}

{{- define "addon-operator.certificatesAreMounted" -}}
{{- if and (include "addon-operator.admits" .) (ne .root.Values.webhook.certificates.source "operator") -}}true{{- end -}}
{{- end -}}

{{- define "addon-operator.clientCAIsMounted" -}}
{{- $given := .root.Values.webhook.clientCA -}}
{{- if and (include "addon-operator.admits" .) (or $given.secretName $given.configMapName) -}}true{{- end -}}
{{- end -}}

{{/* The environment as YAML: settings of the chart, overridden by those of the user. */}}
{{- define "addon-operator.settings" -}}
{{- $part := . -}}
{{- with .root -}}
{{- $set := dict
  "ADDON_OPERATOR_CONFIG_MAP" .Values.valuesConfigMap.name
  "ADDON_OPERATOR_LISTEN_PORT" (toString .Values.service.port)
  "ADDON_OPERATOR_TMP_DIR" "/tmp/addon-operator"
  "CHART_CACHE_DIR" "/var/cache/addon-operator/charts"
  "ADMISSION_SERVER_ENABLED" (include "addon-operator.admits" $part | default "false")
  "DEBUG_UNIX_SOCKET" "/var/run/addon-operator/debug.socket"
  "GLOBAL_HOOKS_DIR" .Values.globalHooksDir
  "MODULES_DIR" .Values.modulesDir
-}}
{{- with include "addon-operator.modulesSource" . -}}
{{- $given := include "addon-operator.modulesSourceValues" $part.root | fromYaml -}}
{{- $_ := set $set "MODULES_DIR" (include "addon-operator.inModulesTree" (list $part.root $given.subPath)) -}}
{{- with $given.globalHooksSubPath -}}
{{- $_ := set $set "GLOBAL_HOOKS_DIR" (include "addon-operator.inModulesTree" (list $part.root .)) -}}
{{- end -}}
{{- if ne . "image" -}}
{{- $_ := set $set "WATCH_MODULES" "yes" -}}
{{- end -}}
{{- end -}}
{{- if .Values.chartCredentialsSecret -}}
{{- $_ := set $set "CHART_CREDENTIALS" "/etc/addon-operator/chart-credentials/config.json" -}}
{{- end -}}
{{- with (.Values.valuesSecret).name -}}
{{- $_ := set $set "VALUES_SECRET" . -}}
{{- end -}}
{{- with (.Values.notifications).secretName -}}
{{- $_ := set $set "NOTIFY_SECRET" . -}}
{{- end -}}
{{- if eq $part.part "admission" -}}
{{- $_ := set $set "ADMISSION_ONLY" "true" -}}
{{- $_ := set $set "CONFIG_WRITER" (printf "system:serviceaccount:%s:%s" .Release.Namespace (include "addon-operator.serviceAccountOf" (dict "root" . "part" "operator"))) -}}
{{- else -}}
{{- $_ := set $set "ADDON_OPERATOR_HA" (toString .Values.highAvailability.enabled) -}}
{{- $_ := set $set "HELM_IGNORE_RELEASE" .Release.Name -}}
{{- $_ := set $set "SHUTDOWN_GRACE" (printf "%ds" (int .Values.shutdownGraceSeconds)) -}}
{{- end -}}
{{- if include "addon-operator.admits" $part -}}
{{- $_ := set $set "ADMISSION_SERVER_LISTEN_PORT" (toString .Values.service.webhookPort) -}}
{{- $_ := set $set "CONFIG_VALIDATION" (toString .Values.valuesConfigMap.validate) -}}
{{- $_ := set $set "ENVFROM_SOURCES" (include "addon-operator.envFromSources" . | default "none") -}}
{{- $_ := set $set "EXPANSION_EVENTS" (toString .Values.podPresets.expansionEvents) -}}
{{- $_ := set $set "WEBHOOK_CONFIGURATION" (include "addon-operator.webhookConfiguration" .) -}}
{{- $_ := set $set "WEBHOOK_FAILURE_POLICY" .Values.podPresets.failurePolicy -}}
{{- $_ := set $set "WEBHOOK_SERVICE" (include "addon-operator.webhookService" .) -}}
{{- end -}}
{{- if include "addon-operator.certificatesAreMounted" $part -}}
{{- $_ := set $set "ADMISSION_SERVER_CERTS_DIR" "/etc/addon-operator/certificates" -}}
{{- end -}}
{{- if include "addon-operator.clientCAIsMounted" $part -}}
{{- $_ := set $set "WEBHOOK_CLIENT_CA" (printf "/etc/addon-operator/client-ca/%s" .Values.webhook.clientCA.key) -}}
{{- end -}}
{{- /* If the user sets another name of a setting, omit the chart's. */ -}}
{{- range $name, $_ := .Values.settings -}}
{{- $bare := $name | trimPrefix "ADDON_OPERATOR_" | trimPrefix "SHELL_OPERATOR_" -}}
{{- if eq $name "SHELL_OPERATOR_HOOKS_DIR" -}}{{- $bare = "GLOBAL_HOOKS_DIR" -}}{{- end -}}
{{- $_ := unset $set $bare -}}
{{- $_ := unset $set (printf "ADDON_OPERATOR_%s" $bare) -}}
{{- end -}}
{{- range $name, $value := .Values.settings -}}
{{- /* Helm reads an integer as a float, which would be written as 1e+06. */ -}}
{{- if kindIs "float64" $value -}}
{{- if eq $value (floor $value) -}}{{- $value = int64 $value -}}{{- end -}}
{{- end -}}
{{- $text := toString $value -}}
{{- if hasSuffix "HELM_IGNORE_RELEASE" $name -}}
{{- $text = printf "%s,%s" $part.root.Release.Name $text -}}
{{- end -}}
{{- $_ := set $set $name $text -}}
{{- end -}}
{{- toYaml $set -}}
{{- end -}}
{{- end -}}

{{/* The Secret with values; empty if none is read. */}}
{{- define "addon-operator.valuesSecret" -}}
{{- $name := default .Values.valuesConfigMap.name (.Values.valuesSecret).name -}}
{{- if ne $name "none" -}}{{- $name -}}{{- end -}}
{{- end -}}

{{/* The Secret that says who is notified; empty if none is read. */}}
{{- define "addon-operator.notifySecret" -}}
{{- $name := default (printf "%s-notify" .Values.valuesConfigMap.name) (.Values.notifications).secretName -}}
{{- if ne $name "none" -}}{{- $name -}}{{- end -}}
{{- end -}}

{{/* Prefix of all metrics. */}}
{{- define "addon-operator.metricsPrefix" -}}
{{- $set := .Values.settings -}}
{{- default "addon_operator_" (coalesce (get $set "ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX") (get $set "PROMETHEUS_METRICS_PREFIX")) -}}
{{- end -}}

{{/* Where Helm keeps its records, as a resource. */}}
{{- define "addon-operator.records" -}}
{{- $set := .Values.settings -}}
{{- if hasPrefix "configmap" (default "secret" (coalesce (get $set "ADDON_OPERATOR_HELM_DRIVER") (get $set "HELM_DRIVER"))) -}}configmaps{{- else -}}secrets{{- end -}}
{{- end -}}

{{/* The Lease by which replicas agree on who leads; without replicas, each ConfigMap has its own. */}}
{{- define "addon-operator.lease" -}}
{{- $set := .Values.settings -}}
{{- $usual := "addon-operator-leader-election" -}}
{{- if and (not .Values.highAvailability.enabled) (ne .Values.valuesConfigMap.name "addon-operator") -}}
{{- $usual = printf "%s-%s" $usual .Values.valuesConfigMap.name -}}
{{- end -}}
{{- default $usual (coalesce (get $set "ADDON_OPERATOR_LEASE_NAME") (get $set "LEASE_NAME")) -}}
{{- end -}}

{{/* Settings that the chart derives from other values: what to set instead. */}}
{{- define "addon-operator.checkOwnSettings" -}}
{{- $instead := dict
  "NAMESPACE" "install with helm's --namespace"
  "CONFIG_MAP" "set valuesConfigMap.name"
  "VALUES_SECRET" "set valuesSecret.name"
  "LISTEN_PORT" "set service.port"
  "HA" "set highAvailability.enabled"
  "WEBHOOK_SERVICE" "set fullnameOverride, after which the Service is called"
  "ADMISSION_SERVER_LISTEN_PORT" "set service.webhookPort"
  "ADMISSION_SERVER_ENABLED" "set podPresets.enabled"
  "WEBHOOK_CONFIGURATION" "remove it: the name is that of the namespace"
  "ENVFROM_SOURCES" "set podPresets.readConfigMaps and podPresets.readSecrets"
  "ADMISSION_ONLY" "set admission.separate"
  "CONFIG_WRITER" "set serviceAccount.name, whom it names"
  "WEBHOOK_CLIENT_CA" "set webhook.clientCA"
-}}
{{- range $name, $_ := .Values.settings -}}
{{- $bare := $name | trimPrefix "ADDON_OPERATOR_" | trimPrefix "SHELL_OPERATOR_" -}}
{{- if hasKey $instead $bare -}}
{{- fail (printf "settings.%s is set, which the chart sets from other values: %s" $name (get $instead $bare)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A value as JSON; "null" if it is not there. Takes a list: the values, and the path. */}}
{{- define "addon-operator.valueAt" -}}
{{- $found := first . -}}
{{- range last . | splitList "." -}}
{{- $found = kindIs "map" $found | ternary (get ($found | default dict) .) nil -}}
{{- end -}}
{{- /* Numbers of --set and of files have other types. */ -}}
{{- if or (kindIs "float64" $found) (kindIs "int64" $found) }}{{ int64 $found }}{{ else }}{{ toJson $found }}{{ end -}}
{{- end -}}

{{/* Values that are set without the one that gives them an effect: see dependent-values.yaml. */}}
{{- define "addon-operator.checkDependents" -}}
{{- range $path, $about := .Files.Get "dependent-values.yaml" | fromYaml -}}
{{- $given := include "addon-operator.valueAt" (list $.Values $path) -}}
{{- $usual := include "addon-operator.valueAt" (list (dict "x" $about.default) "x") -}}
{{- $unset := list "null" "false" "\"\"" -}}
{{- $isMet := false -}}
{{- range $about.needs -}}
{{- $other := include "addon-operator.valueAt" (list $.Values .) -}}
{{- if hasKey $about "is" | ternary (eq $other (toJson $about.is)) (not (has $other $unset)) -}}{{- $isMet = true -}}{{- end -}}
{{- end -}}
{{- if not (or $isMet (eq $given $usual) (eq $given "null")) -}}
{{- $missing := hasKey $about "is" | ternary (printf "%s=%v" (first $about.needs) $about.is) (join " or " $about.needs) -}}
{{- fail (printf "%s is set and has no effect: set %s, too, or remove it" $path $missing) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether it serves PodPresets and nothing else, as far as the values tell. */}}
{{- define "addon-operator.isPodPresetsOnly" -}}
{{- $hasModules := or (include "addon-operator.modulesSource" .) (ne .Values.rbac.modules "none") .Values.valuesConfigMap.create -}}
{{- if not (or $hasModules .Values.moduleStatus.enabled .Values.valuesConfigMap.validate (not .Values.podPresets.enabled)) -}}true{{- end -}}
{{- end -}}

{{/* Mistakes that a schema cannot find. */}}
{{- define "addon-operator.check" -}}
{{- include "addon-operator.checkModules" . -}}
{{- include "addon-operator.checkDependents" . -}}
{{- if and .Values.networkPolicy.enabled .Values.networkPolicy.egress.enabled (not .Values.networkPolicy.egress.rules) -}}
{{- fail "networkPolicy.egress.enabled is true and networkPolicy.egress.rules is empty: the operator could not reach the API server; add a rule with its address and port" -}}
{{- end -}}
{{- if and (has "*" (.Values.releaseNamespaces | default list)) (gt (len .Values.releaseNamespaces) 1) -}}
{{- fail "releaseNamespaces has \"*\" beside names: \"*\" alone means all namespaces" -}}
{{- end -}}
{{- if and (has "*" (.Values.releaseNamespaces | default list)) (eq .Values.rbac.modules "namespace-admin") -}}
{{- fail "releaseNamespaces is \"*\" and rbac.modules is namespace-admin, which would be everything in every namespace: name the namespaces, or set rbac.modules to cluster-admin" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.highAvailability.enabled) -}}
{{- fail "replicas is more than 1 and highAvailability.enabled is false: two operators would work at once; set replicas to 1 or elect a leader" -}}
{{- end -}}
{{- range list "SHUTDOWN_GRACE" "ADDON_OPERATOR_SHUTDOWN_GRACE" -}}
{{- if hasKey $.Values.settings . -}}
{{- fail (printf "settings.%s is set: the pod would be killed at another time than the operator expects; set shutdownGraceSeconds" .) -}}
{{- end -}}
{{- end -}}
{{- include "addon-operator.checkOwnSettings" . -}}
{{- if not (regexMatch "^(https?://[^/]|docs/runbooks$)" .Values.metrics.rules.runbookBase) -}}
{{- fail (printf "metrics.rules.runbookBase is %s, which is not a URL: write where docs/runbooks is published, such as https://wiki.example/runbooks" .Values.metrics.rules.runbookBase) -}}
{{- end -}}
{{- with .Values.webhook.clientCA -}}
{{- if and .secretName .configMapName -}}
{{- fail "webhook.clientCA.secretName and webhook.clientCA.configMapName are both set: name the one that holds the authority" -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .Values.commonLabels -}}
{{- if or (hasPrefix "app.kubernetes.io/" $name) (hasPrefix "helm.sh/" $name) -}}
{{- fail (printf "commonLabels has %s, which the chart sets itself: choose another label" $name) -}}
{{- end -}}
{{- end -}}
{{- $known := .Files.Get "settings.txt" | trim | splitList "\n" -}}
{{- range $name, $_ := .Values.settings -}}
{{- if not (has $name $known) -}}
{{- fail (printf "settings.%s is not a setting of the operator: docs/reference/settings.md has all; variables for hooks go into extraEnv" $name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- fail "metrics.serviceMonitor.enabled and metrics.podMonitor.enabled are both true: everything would be scraped twice; enable one of them" -}}
{{- end -}}
{{- end -}}
