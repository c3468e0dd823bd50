// Controlplane is etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one program.
//
// The first argument names the role; the rest are that role's own flags. Run each role as a process of its
// own: feature gates, logging and the signal context are process globals that the roles would fight over.
package main

import (
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

// serveEtcd runs one member on loopback, with the flags of etcd's own program that a single member needs.
func serveEtcd(arguments []string) error {
	config := embed.NewConfig()
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	flags.StringVar(&config.Dir, "data-dir", "", "folder of the database")
	flags.StringVar(&config.LogLevel, "log-level", "warn", "debug, info, warn or error")
	flags.BoolVar(&config.UnsafeNoFsync, "unsafe-no-fsync", false, "for a folder that is thrown away")
	flags.StringVar(&config.InitialCluster, "initial-cluster", "", "NAME=PEER-URL of the member")
	for name, urls := range map[string]*[]url.URL{
		"listen-client-urls":          &config.ListenClientUrls,
		"advertise-client-urls":       &config.AdvertiseClientUrls,
		"listen-peer-urls":            &config.ListenPeerUrls,
		"initial-advertise-peer-urls": &config.AdvertisePeerUrls,
	} {
		flags.Func(name, "one URL", func(value string) error {
			parsed, err := url.Parse(value)
			if err == nil {
				*urls = []url.URL{*parsed}
			}
			return err
		})
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	member, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer member.Close()
	return <-member.Err()
}
