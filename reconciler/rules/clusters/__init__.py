"""Clusters: which there are, and which of them a policy means; shared by rooms (kubeadmiral 3, design 10.3)."""
