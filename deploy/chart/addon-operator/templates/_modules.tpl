{{/* Modules that are not in the operator's image: where they come from, and the containers that fetch them. */}}

{{/* "image", "git", "configMap", or empty if modules are in the operator's image. */}}
{{- define "addon-operator.modulesSource" -}}
{{- with .Values.modules -}}
{{- $given := list -}}
{{- if .image.reference }}{{ $given = append $given "image" }}{{ end -}}
{{- if .git.repo }}{{ $given = append $given "git" }}{{ end -}}
{{- if .configMap.name }}{{ $given = append $given "configMap" }}{{ end -}}
{{- if gt (len $given) 1 -}}
{{- fail (printf "modules.%s are all set: choose one source of modules" (join ", modules." $given)) -}}
{{- end -}}
{{- first (append $given "") -}}
{{- end -}}
{{- end -}}

{{/* Values of the source, as YAML. */}}
{{- define "addon-operator.modulesSourceValues" -}}
{{- toYaml (get .Values.modules (include "addon-operator.modulesSource" .)) -}}
{{- end -}}

{{/* Where the containers put the tree. Of git it is a link, which moves to each new commit. */}}
{{- define "addon-operator.modulesVolume" -}}/var/lib/addon-operator/modules{{- end -}}
{{- define "addon-operator.modulesTree" -}}{{ include "addon-operator.modulesVolume" . }}/tree{{- end -}}

{{/* A directory of the tree. Takes a list: the chart's scope, and the path below the tree. */}}
{{- define "addon-operator.inModulesTree" -}}
{{- list (include "addon-operator.modulesTree" (first .)) (last . | trimAll "/") | compact | join "/" -}}
{{- end -}}

{{- define "addon-operator.checkModules" -}}
{{- $source := include "addon-operator.modulesSource" . -}}
{{- if and (eq $source "image") (semverCompare "<1.31-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "modules.image needs image volumes, which Kubernetes has since 1.31 (since 1.35 without a feature gate), and the cluster runs %s; use modules.git or modules.configMap" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* Containers that run to their end before the operator starts. */}}
{{- define "addon-operator.modulesInitContainers" -}}
{{- $source := include "addon-operator.modulesSource" . -}}
{{- if eq $source "git" }}
- name: modules-git-first
  {{- include "addon-operator.gitSync" (dict "root" . "once" true) | nindent 2 }}
{{- else if $source }}
{{- $given := include "addon-operator.modulesSourceValues" . | fromYaml }}
- name: modules
  image: {{ include "addon-operator.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  securityContext:
    {{- toYaml .Values.securityContext | nindent 4 }}
  command:
    - /bin/sh
    - -euc
    - |
      cd "$TARGET"
      # Of a start before this one.
      if [ -e tree ]; then chmod -R u+rwX tree; rm -rf tree; fi
      mkdir tree
      {{- if eq $source "image" }}
      # Image volumes have no executable files, so hooks cannot run there.
      cp -R --preserve=mode,timestamps "$SOURCE/." tree
      {{- else }}
      # A few kilobytes can unpack to gigabytes.
      gzip -dc "$SOURCE" | head -c "$MAX_BYTES" | tar -x -f - -C tree || {
        echo "$WHAT is not a tar.gz archive, or holds more than $MAX_BYTES bytes: see modules.configMap" >&2
        exit 1
      }
      {{- end }}
      if [ ! -d "tree/$SUB_PATH" ]; then
        echo "$WHAT has no directory '$SUB_PATH': see modules.{{ $source }}.subPath" >&2
        exit 1
      fi
  env:
    - name: TARGET
      value: {{ include "addon-operator.modulesVolume" . }}
    - name: SUB_PATH
      value: {{ $given.subPath | quote }}
    {{- if eq $source "image" }}
    - name: WHAT
      value: {{ printf "image %s" $given.reference | quote }}
    - name: SOURCE
      value: /mnt/modules
    {{- else }}
    - name: WHAT
      value: {{ printf "ConfigMap %s, key %s," $given.name $given.key | quote }}
    - name: SOURCE
      value: /mnt/modules/modules.tar.gz
    - name: MAX_BYTES
      value: {{ int64 $given.maxBytes | quote }}
    {{- end }}
  {{- with .Values.modules.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
    - name: modules-source
      mountPath: /mnt/modules
      readOnly: true
    - name: modules
      mountPath: {{ include "addon-operator.modulesVolume" . }}
{{- end }}
{{- end -}}

{{/* Containers that run beside the operator. */}}
{{- define "addon-operator.modulesContainers" -}}
{{- if eq (include "addon-operator.modulesSource" .) "git" }}
- name: modules-git
  {{- include "addon-operator.gitSync" (dict "root" . "once" false) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* git-sync, "once" or again and again. */}}
{{- define "addon-operator.gitSync" -}}
{{- $once := .once -}}
{{- with .root -}}
{{- $git := .Values.modules.git -}}
{{- $isHttp := regexMatch "^https?://" $git.repo -}}
image: {{ $git.image | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml (merge (deepCopy $git.securityContext) .Values.securityContext) | nindent 2 }}
env:
  - name: GITSYNC_REPO
    value: {{ $git.repo | quote }}
  - name: GITSYNC_REF
    value: {{ $git.ref | quote }}
  - name: GITSYNC_ROOT
    value: {{ include "addon-operator.modulesVolume" . }}
  - name: GITSYNC_LINK
    value: tree
  - name: HOME
    value: /tmp
  {{- if $once }}
  - name: GITSYNC_ONE_TIME
    value: "true"
  {{- else }}
  - name: GITSYNC_PERIOD
    value: {{ $git.period | quote }}
  # What is checked out stays in use while the repository cannot be reached.
  - name: GITSYNC_MAX_FAILURES
    value: "-1"
  {{- end }}
  {{- if and $git.credentialsSecret $isHttp }}
  - name: GITSYNC_USERNAME
    valueFrom:
      secretKeyRef:
        name: {{ $git.credentialsSecret }}
        key: username
  - name: GITSYNC_PASSWORD_FILE
    value: /etc/git-secret/password
  {{- else if $git.credentialsSecret }}
  - name: GITSYNC_SSH_KEY_FILE
    value: /etc/git-secret/ssh-privatekey
  - name: GITSYNC_SSH_KNOWN_HOSTS_FILE
    value: /etc/git-secret/known_hosts
  {{- end }}
  {{- with $git.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.modules.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: modules
    mountPath: {{ include "addon-operator.modulesVolume" . }}
  - name: git-tmp
    mountPath: /tmp
  {{- if $git.credentialsSecret }}
  - name: git-credentials
    mountPath: /etc/git-secret
    readOnly: true
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "addon-operator.modulesVolumes" -}}
{{- $source := include "addon-operator.modulesSource" . -}}
{{- if $source }}
{{- $given := include "addon-operator.modulesSourceValues" . | fromYaml }}
- name: modules
  emptyDir:
    sizeLimit: {{ .Values.modules.sizeLimit }}
{{- if eq $source "image" }}
- name: modules-source
  image:
    reference: {{ $given.reference | quote }}
    pullPolicy: {{ $given.pullPolicy }}
{{- else if eq $source "configMap" }}
- name: modules-source
  configMap:
    name: {{ $given.name }}
    items:
      - key: {{ $given.key | quote }}
        path: modules.tar.gz
{{- else }}
- name: git-tmp
  emptyDir:
    sizeLimit: 16Mi
{{- with $given.credentialsSecret }}
- name: git-credentials
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
