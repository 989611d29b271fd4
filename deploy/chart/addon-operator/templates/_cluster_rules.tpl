{{/* What admission needs in the whole cluster, whichever pod serves it. */}}
{{- define "addon-operator.admissionRules" }}
# podPresets: the presets and their status
- apiGroups: [settings.k8s.io]
  resources: [podpresets]
  verbs: [get, list, watch]
- apiGroups: [settings.k8s.io]
  resources: [podpresets/status]
  verbs: [patch]
# podPresets: the chart makes these, and the operator fills them
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames: [{{ include "addon-operator.webhookConfiguration" . }}, {{ include "addon-operator.webhookConfiguration" . }}-hooks]
  verbs: [get, list, watch, update]
{{- if and .Values.valuesConfigMap.validate (include "addon-operator.valuesSecret" .) }}
# valuesSecret: whether who edits the values ConfigMap may read the Secret
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
# podPresets: Events on pods and presets, and whether a pod was stored
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- with include "addon-operator.envFromSources" . }}
# podPresets: variables that envFrom of a pod or preset defines
- apiGroups: [""]
  resources: {{ splitList "," . | toJson }}
  verbs: [get]
{{- end }}
{{- if .Values.podPresets.expansionEvents }}
# podPresets.expansionEvents: variables that Services define
- apiGroups: [""]
  resources: [services]
  verbs: [get, list]
{{- end }}
{{- end }}

{{/* What admission needs in the operator's namespace. */}}
{{- define "addon-operator.certificateRules" }}
{{- if .Values.podPresets.enabled }}
# podPresets: the chart makes this Secret, and the operator keeps certificates and the random part of paths there
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [addon-operator-admission]
  verbs: [get, update]
{{- end }}
{{- end }}

{{/* The CustomResourceDefinitions of the operator that the scope "names" lists, if they are to be brought up to date. */}}
{{- define "addon-operator.definitionRules" }}
{{- if and .root.Values.crds.update .names }}
# crds.update: of what is created by server-side apply the API server knows the name
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: {{ .names | toJson }}
  verbs: [get, create, patch]
{{- end }}
{{- end }}

{{/* Helm's records of releases. */}}
{{- define "addon-operator.releaseRules" }}
- apiGroups: [""]
  resources: [{{ include "addon-operator.records" . | quote }}]
  verbs: [get, list, watch, create, update, patch, delete]
{{- end }}

{{/* What charts and hooks of modules need in a namespace. */}}
{{- define "addon-operator.moduleRules" }}
{{- if eq .Values.rbac.modules "namespace-admin" }}
# rbac.modules: namespace-admin
- apiGroups: ["*"]
  resources: ["*"]
  verbs: ["*"]
{{- end }}
{{- with .Values.rbac.extraNamespaceRules }}
# rbac.extraNamespaceRules
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* What the operator itself needs in the whole cluster. */}}
{{- define "addon-operator.clusterRules" }}
{{- $crds := list }}
{{- if include "addon-operator.admits" (dict "root" . "part" "operator") }}
{{- $crds = append $crds "podpresets.settings.k8s.io" }}
{{- include "addon-operator.admissionRules" . }}
{{- if not .Values.rbac.moduleCRDs }}
# admission: which definitions hooks converted; to convert with hooks takes rbac.moduleCRDs
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list]
{{- end }}
{{- end }}
{{- if .Values.moduleStatus.enabled }}{{ $crds = append $crds "modules.addon-operator.io" }}{{ end }}
{{- if not .Values.rbac.moduleCRDs }}
{{- include "addon-operator.definitionRules" (dict "root" . "names" $crds) }}
{{- end }}
{{- if and .Values.moduleStatus.enabled .Values.crds.update }}
# crds.update: the definition of an older version, whose Modules had no namespace, goes before the new one comes
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [modules.addon-operator.io]
  verbs: [delete]
{{- end }}
{{- if .Values.rbac.moduleCRDs }}
# rbac.moduleCRDs
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch, create, update, patch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions/status]
  verbs: [update, patch]
{{- end }}
{{- if has "*" (.Values.releaseNamespaces | default list) }}
# releaseNamespaces: releases of modules in any namespace
{{- include "addon-operator.releaseRules" . }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, create]
{{- end }}
# which APIs there are: requires.apis of module.yaml, and kinds of watches that move to another version
- apiGroups: [apiregistration.k8s.io]
  resources: [apiservices]
  verbs: [get, list, watch]
{{- with .Values.rbac.extraRules }}
# rbac.extraRules
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
