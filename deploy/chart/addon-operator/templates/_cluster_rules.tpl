{{- define "addon-operator.clusterRules" }}
{{- $crds := list }}
{{- if .Values.podPresets.enabled }}{{ $crds = append $crds "podpresets.settings.k8s.io" }}{{ end }}
{{- if .Values.moduleStatus.enabled }}{{ $crds = append $crds "modules.addon-operator.io" }}{{ end }}
{{- if .Values.podPresets.enabled }}
# podPresets: the presets and their status
- apiGroups: [settings.k8s.io]
  resources: [podpresets]
  verbs: [get, list, watch]
- apiGroups: [settings.k8s.io]
  resources: [podpresets/status]
  verbs: [patch]
# podPresets: the webhooks, registered by the operator under this name
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames: [addon-operator-{{ .Release.Namespace }}]
  verbs: [get, list, watch, update]
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [create]
# podPresets: Events on pods and presets, and whether a pod was stored
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- $sources := list }}
{{- if .Values.podPresets.readConfigMaps }}{{ $sources = append $sources "configmaps" }}{{ end }}
{{- if .Values.podPresets.readSecrets }}{{ $sources = append $sources "secrets" }}{{ end }}
{{- if $sources }}
# podPresets: variables that envFrom of a pod or preset defines
- apiGroups: [""]
  resources: [{{ join ", " $sources }}]
  verbs: [get]
{{- end }}
{{- if .Values.podPresets.expansionEvents }}
# podPresets.expansionEvents: variables that Services define
- apiGroups: [""]
  resources: [services]
  verbs: [get, list]
{{- end }}
{{- end }}
{{- if .Values.moduleStatus.enabled }}
# moduleStatus: one object for each module
- apiGroups: [addon-operator.io]
  resources: [modules]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [addon-operator.io]
  resources: [modules/status]
  verbs: [get, update, patch]
{{- end }}
{{- if and .Values.crds.update $crds (not .Values.rbac.moduleCRDs) }}
# crds.update: a right to create cannot be held to a name
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [{{ join ", " $crds }}]
  verbs: [get, patch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [create]
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
{{- with .Values.rbac.extraRules }}
# rbac.extraRules
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
