{{/* A pod template. The operator's and, with admission.separate, that of admission are the same but for what is in $own and
what the helpers make of the part: a dict with the "root" and the "part", "operator" or "admission". */}}
{{- define "addon-operator.pod" -}}
{{- $own := eq .part "admission" | ternary .root.Values.admission .root.Values }}
{{- with .root -}}
metadata:
  labels:
    {{- include "addon-operator.selectorLabelsOf" $ | nindent 4 }}
    {{- with include "addon-operator.commonLabels" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: addon-operator
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "addon-operator.serviceAccountOf" $ | quote }}
  automountServiceAccountToken: true
  # Variables of a Service called addon-operator look like settings.
  enableServiceLinks: false
  {{- if .Values.hostNetwork }}
  hostNetwork: true
  {{- end }}
  {{- with .Values.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" .Values.hostNetwork) }}
  dnsPolicy: {{ . | quote }}
  {{- end }}
  terminationGracePeriodSeconds: {{ add .Values.shutdownGraceSeconds 15 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with include "addon-operator.modulesInitContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: addon-operator
      image: {{ include "addon-operator.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy | quote }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      env:
        - name: ADDON_OPERATOR_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        - name: ADDON_OPERATOR_POD
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- $settings := include "addon-operator.settings" $ | fromYaml }}
        {{- range $name := keys $settings | sortAlpha }}
        - name: {{ $name | quote }}
          value: {{ get $settings $name | quote }}
        {{- end }}
        {{- with $own.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $own.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .Values.service.port }}
        {{- if include "addon-operator.admits" $ }}
        - name: webhook
          containerPort: {{ .Values.service.webhookPort }}
        {{- end }}
      startupProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 1
        timeoutSeconds: 2
        failureThreshold: {{ .Values.probes.startupSeconds }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: {{ .Values.probes.livenessPeriodSeconds }}
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          # A replica that admits pods is needed from its first second, however long the first converge takes.
          path: {{ include "addon-operator.admits" $ | empty | ternary "/readyz" "/readyz/admission" }}
          port: http
        periodSeconds: {{ .Values.probes.readinessPeriodSeconds }}
        timeoutSeconds: 3
      {{- with $own.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: run
          mountPath: /var/run/addon-operator
        {{- if include "addon-operator.certificatesAreMounted" $ }}
        - name: certificates
          mountPath: /etc/addon-operator/certificates
          readOnly: true
        {{- end }}
        {{- if include "addon-operator.clientCAIsMounted" $ }}
        - name: client-ca
          mountPath: /etc/addon-operator/client-ca
          readOnly: true
        {{- end }}
        - name: charts
          mountPath: /var/cache/addon-operator/charts
        {{- if .Values.chartCredentialsSecret }}
        - name: chart-credentials
          mountPath: /etc/addon-operator/chart-credentials
          readOnly: true
        {{- end }}
        {{- if include "addon-operator.modulesSource" . }}
        - name: modules
          mountPath: {{ include "addon-operator.modulesVolume" . | quote }}
          readOnly: true
        {{- end }}
        {{- with $own.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with include "addon-operator.modulesContainers" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $own.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        {{- toYaml .Values.tmp | nindent 8 }}
    - name: run
      emptyDir:
        sizeLimit: 1Mi
    {{- if include "addon-operator.certificatesAreMounted" $ }}
    - name: certificates
      secret:
        secretName: {{ include "addon-operator.certificateSecret" . | quote }}
    {{- end }}
    {{- if include "addon-operator.clientCAIsMounted" $ }}
    - name: client-ca
      {{- with .Values.webhook.clientCA }}
      {{- if .secretName }}
      secret:
        secretName: {{ .secretName | quote }}
      {{- else }}
      configMap:
        name: {{ .configMapName | quote }}
      {{- end }}
      {{- end }}
    {{- end }}
    - name: charts
      {{- $cache := .Values.chartCache | default dict }}
      {{- if $cache.existingClaim }}
      persistentVolumeClaim:
        claimName: {{ $cache.existingClaim | quote }}
      {{- else }}
      emptyDir:
        sizeLimit: {{ $cache.sizeLimit | default "1Gi" | quote }}
      {{- end }}
    {{- with .Values.chartCredentialsSecret }}
    - name: chart-credentials
      secret:
        secretName: {{ . | quote }}
        items:
          - key: .dockerconfigjson
            path: config.json
    {{- end }}
    {{- with include "addon-operator.modulesVolumes" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $own.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . | quote }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "addon-operator.selectorLabelsOf" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
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
