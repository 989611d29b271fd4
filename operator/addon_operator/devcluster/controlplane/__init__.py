"""The programs of one control plane: certificates, kubeconfigs, command lines, start."""
