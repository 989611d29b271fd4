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
{{- range $name, $key := dict "image" "reference" "git" "repo" "configMap" "name" -}}
{{- $given := get ($.Values.modules | default dict) $name | default dict -}}
{{- if not (get $given $key) -}}
{{- range list "subPath" "globalHooksSubPath" "credentialsSecret" -}}
{{- if get $given . -}}
{{- fail (printf "modules.%s.%s is set and modules.%s.%s is not: nothing would be mounted; set both" $name . $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $source "git" -}}
{{- include "addon-operator.checkGit" .Values.modules.git -}}
{{- end -}}
{{- end -}}

{{- define "addon-operator.checkGit" -}}
{{- $isHttp := regexMatch "^https?://" .repo -}}
{{- if regexMatch "^https?://[^/]*@" .repo -}}
{{- fail "modules.git.repo holds a user or a password, which everybody could read who may see the Deployment; put them into a Secret and name it in modules.git.credentialsSecret" -}}
{{- end -}}
{{- if and (not $isHttp) (not .credentialsSecret) -}}
{{- fail "modules.git.repo is reached by SSH, which needs a key: name a Secret with ssh-privatekey and known_hosts in modules.git.credentialsSecret" -}}
{{- end -}}
{{- if and (.ca).secretName (.ca).configMapName -}}
{{- fail "modules.git.ca.secretName and modules.git.ca.configMapName are both set: name the one that holds the authority" -}}
{{- end -}}
{{- if and (or (.ca).secretName (.ca).configMapName) (not (hasPrefix "https://" .repo)) -}}
{{- fail "modules.git.ca is set and modules.git.repo does not begin with https://: no certificate would be checked; with SSH, known_hosts of modules.git.credentialsSecret says whom to trust" -}}
{{- end -}}
{{- end -}}

{{/* Containers that run to their end before the operator starts. */}}
{{- define "addon-operator.modulesInitContainers" -}}
{{- $source := include "addon-operator.modulesSource" . -}}
{{- if eq $source "git" }}
- name: modules-git-first
  {{- include "addon-operator.gitSync" (dict "root" . "once" true) | nindent 2 }}
{{- else if $source }}
- name: modules
  {{- include (printf "addon-operator.from%s" (title $source)) (dict "root" . "once" true) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Containers that run beside the operator. */}}
{{- define "addon-operator.modulesContainers" -}}
{{- $source := include "addon-operator.modulesSource" . -}}
{{- if eq $source "git" }}
- name: modules-git
  {{- include "addon-operator.gitSync" (dict "root" . "once" false) | nindent 2 }}
{{- else if eq $source "configMap" }}
- name: modules-configmap
  {{- include "addon-operator.fromConfigMap" (dict "root" . "once" false) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What the containers with the operator's own image have in common. Takes the chart's scope. */}}
{{- define "addon-operator.fetching" -}}
image: {{ include "addon-operator.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy | quote }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- with .Values.modules.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: modules-source
    mountPath: /mnt/modules
    readOnly: true
  - name: modules
    mountPath: {{ include "addon-operator.modulesVolume" . | quote }}
{{- end -}}

{{- define "addon-operator.fromImage" -}}
{{- with .root -}}
{{- include "addon-operator.fetching" . }}
command:
  - /bin/sh
  - -euc
  - |
    cd "$TARGET"
    # Of a start before this one.
    if [ -e tree ]; then chmod -R u+rwX tree; rm -rf tree; fi
    mkdir tree
    # Image volumes have no executable files, so hooks cannot run there.
    cp -R --preserve=mode,timestamps "$SOURCE/." tree
    if [ ! -d "tree/$SUB_PATH" ]; then
      echo "image $IMAGE has no directory '$SUB_PATH': see modules.image.subPath" >&2
      exit 1
    fi
env:
  - name: TARGET
    value: {{ include "addon-operator.modulesVolume" . | quote }}
  - name: SUB_PATH
    value: {{ .Values.modules.image.subPath | quote }}
  - name: IMAGE
    value: {{ .Values.modules.image.reference | quote }}
  - name: SOURCE
    value: /mnt/modules
{{- end -}}
{{- end -}}

{{/* "once": unpack the archive and end; else unpack each new one beside the old, and move a link to it. */}}
{{- define "addon-operator.fromConfigMap" -}}
{{- $once := .once -}}
{{- with .root -}}
{{- include "addon-operator.fetching" . }}
command:
  - /bin/sh
  - -euc
  - |
    cd "$TARGET"
    remove() {
      for each in "$@"; do
        if [ -d "$each" ] && [ ! -L "$each" ]; then chmod -R u+rwX "$each"; fi
        rm -rf "$each"
      done
    }
    version() {
      sha256sum < "$SOURCE" | cut -d ' ' -f 1
    }
    # Takes the version. The link moves at once, so that nobody sees half of an archive.
    unpack() {
      remove new && mkdir new || return
      # A few kilobytes can unpack to gigabytes.
      gzip -dc "$SOURCE" | head -c "$MAX_BYTES" | tar -x -f - -C new || {
        echo "$WHAT is not a tar.gz archive, or holds more than $MAX_BYTES bytes: see modules.configMap" >&2
        return 1
      }
      if [ ! -d "new/$SUB_PATH" ]; then
        echo "$WHAT has no directory '$SUB_PATH': see modules.configMap.subPath" >&2
        return 1
      fi
      mv new "$1" && ln -s "$1" link && mv -T link tree
    }
    {{- if $once }}
    # Of a start before this one.
    remove ./*
    unpack "$(version)"
    {{- else }}
    trap 'exit 0' TERM INT
    seen=$(readlink tree)
    while sleep "$PERIOD" & wait $!; do
      new=$(version) || continue
      if [ "$new" = "$seen" ]; then continue; fi
      seen=$new
      old=$(readlink tree)
      # The archive of before.
      if [ "$new" = "$old" ]; then continue; fi
      if unpack "$new"; then
        echo "$WHAT changed: its modules are unpacked" >&2
        remove "$old"
      else
        echo "the modules stay as they were until $WHAT changes again" >&2
      fi
    done
    {{- end }}
env:
  - name: TARGET
    value: {{ include "addon-operator.modulesVolume" . | quote }}
  - name: SUB_PATH
    value: {{ .Values.modules.configMap.subPath | quote }}
  - name: WHAT
    value: {{ printf "ConfigMap %s, key %s," .Values.modules.configMap.name .Values.modules.configMap.key | quote }}
  - name: SOURCE
    value: /mnt/modules/modules.tar.gz
  - name: MAX_BYTES
    value: {{ int64 .Values.modules.configMap.maxBytes | quote }}
  {{- if not $once }}
  - name: PERIOD
    value: "10"
  {{- end }}
{{- end -}}
{{- end -}}

{{/* git-sync, "once" or again and again. */}}
{{- define "addon-operator.gitSync" -}}
{{- $once := .once -}}
{{- with .root -}}
{{- $git := .Values.modules.git -}}
{{- $isHttp := regexMatch "^https?://" $git.repo -}}
image: {{ $git.image | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy | quote }}
securityContext:
  {{- toYaml (merge (deepCopy $git.securityContext) .Values.securityContext) | nindent 2 }}
env:
  - name: GITSYNC_REPO
    value: {{ $git.repo | quote }}
  - name: GITSYNC_REF
    value: {{ $git.ref | quote }}
  - name: GITSYNC_ROOT
    value: {{ include "addon-operator.modulesVolume" . | quote }}
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
        name: {{ $git.credentialsSecret | quote }}
        key: username
  - name: GITSYNC_PASSWORD_FILE
    value: /etc/git-secret/password
  {{- else if $git.credentialsSecret }}
  - name: GITSYNC_SSH_KEY_FILE
    value: /etc/git-secret/ssh-privatekey
  - name: GITSYNC_SSH_KNOWN_HOSTS_FILE
    value: /etc/git-secret/known_hosts
  {{- end }}
  {{- if include "addon-operator.gitCA" . }}
  - name: GIT_SSL_CAINFO
    value: {{ printf "/etc/git-ca/%s" $git.ca.key | quote }}
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
    mountPath: {{ include "addon-operator.modulesVolume" . | quote }}
  - name: git-tmp
    mountPath: /tmp
  {{- if $git.credentialsSecret }}
  - name: git-credentials
    mountPath: /etc/git-secret
    readOnly: true
  {{- end }}
  {{- if include "addon-operator.gitCA" . }}
  - name: git-ca
    mountPath: /etc/git-ca
    readOnly: true
  {{- end }}
{{- end -}}
{{- end -}}

{{/* What holds the authority of a repository; empty if it is one that everybody trusts. */}}
{{- define "addon-operator.gitCA" -}}
{{- with .Values.modules.git.ca -}}
{{- default .secretName .configMapName -}}
{{- end -}}
{{- end -}}

{{- define "addon-operator.modulesVolumes" -}}
{{- $source := include "addon-operator.modulesSource" . -}}
{{- if $source }}
{{- $given := include "addon-operator.modulesSourceValues" . | fromYaml }}
- name: modules
  emptyDir:
    sizeLimit: {{ .Values.modules.sizeLimit | quote }}
{{- if eq $source "image" }}
- name: modules-source
  image:
    reference: {{ $given.reference | quote }}
    pullPolicy: {{ $given.pullPolicy | quote }}
{{- else if eq $source "configMap" }}
- name: modules-source
  configMap:
    name: {{ $given.name | quote }}
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
    secretName: {{ . | quote }}
    defaultMode: 0440
{{- end }}
{{- if include "addon-operator.gitCA" . }}
- name: git-ca
  {{- if $given.ca.secretName }}
  secret:
    secretName: {{ $given.ca.secretName | quote }}
  {{- else }}
  configMap:
    name: {{ $given.ca.configMapName | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
