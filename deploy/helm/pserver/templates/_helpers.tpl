{{/* The name of what this release makes, at most 50 characters, so that endings fit. */}}
{{- define "pserver.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels by which a part is selected; takes a list of the root and the name of the part. */}}
{{- define "pserver.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* All labels of a part; takes the same list. */}}
{{- define "pserver.labels" -}}
{{- $root := index . 0 -}}
{{ include "pserver.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{/* The addresses of all brokers: a client whose broker has died goes to the next one. */}}
{{- define "pserver.brokerUrl" -}}
{{- if .Values.brokerUrl -}}
{{- .Values.brokerUrl -}}
{{- else if .Values.nats.enabled -}}
{{- $name := include "nats.fullname" .Subcharts.nats -}}
{{- $config := .Values.nats.config -}}
{{- $scheme := ternary "tls" "nats" $config.nats.tls.enabled -}}
{{- /* In full: clients accept a certificate for all names of a domain only if that has some parts. */ -}}
{{- $domain := printf "%s-headless.%s.svc.%s" $name .Release.Namespace $config.cluster.routeURLs.k8sClusterDomain -}}
{{- $urls := list -}}
{{- range $i := until (int (ternary $config.cluster.replicas 1 $config.cluster.enabled)) -}}
{{- $urls = append $urls (printf "%s://%s-%d.%s:4222" $scheme $name $i $domain) -}}
{{- end -}}
{{- join "," $urls -}}
{{- else -}}
{{- fail "brokerUrl: expected the addresses of brokers where nats.enabled is false; received none" -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the token of the hosts' HTTP. */}}
{{- define "pserver.tokenSecret" -}}
{{- .Values.host.http.tokenSecret | default (printf "%s-http" (include "pserver.fullname" .)) -}}
{{- end -}}

{{/* Environment variables of a map. */}}
{{- define "pserver.env" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end -}}
{{- end -}}
