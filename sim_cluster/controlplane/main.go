// Controlplane is etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one program.
//
// The first argument names the role; the rest are that role's own flags. Run each role as a process of its
// own: feature gates, logging and the signal context are process globals that the roles would fight over.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

const roles = "etcd, apiserver, controller-manager, scheduler"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "role must be one of %s, got nothing\n", roles)
		os.Exit(2)
	}
	role := os.Args[1]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	os.Exit(run(role))
}

func run(role string) int {
	switch role {
	case "etcd":
		if err := serveEtcd(os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "cannot serve etcd: %v\n", err)
			return 1
		}
		return 0
	case "apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "controller-manager":
		return cli.Run(controllers.NewControllerManagerCommand())
	case "scheduler":
		return cli.Run(scheduler.NewSchedulerCommand())
	}
	fmt.Fprintf(os.Stderr, "role must be one of %s, got %q\n", roles, role)
	return 2
}

// serveEtcd runs one member on loopback. It never calls fsync: its folder is thrown away at the end.
func serveEtcd(arguments []string) error {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	folder := flags.String("data-dir", "", "folder of the database")
	client := flags.String("listen-client-url", "", "URL that the API server connects to")
	peer := flags.String("listen-peer-url", "", "URL that other members would connect to")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	clientURL, clientErr := url.Parse(*client)
	peerURL, peerErr := url.Parse(*peer)
	if err := errors.Join(clientErr, peerErr); err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = *folder, "warn", true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	member, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer member.Close()
	return <-member.Err()
}
