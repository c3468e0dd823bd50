"""The real etcd, kube-apiserver, controller-manager and scheduler, built from Go modules."""
