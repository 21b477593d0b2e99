// Command testplane is a Kubernetes control plane for tests in one binary: etcd, the API server, the controller manager and the
// scheduler as their projects release them. One binary links what the four have in common once; each runs as a process of its own.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	// Time zones of CronJobs, on machines without a database of them.
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	// The API server's metrics and its version are registered by being imported, as in its own main package.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func of(command func() *cobra.Command) func([]string) int {
	return func([]string) int { return cli.Run(command()) }
}

var components = map[string]func([]string) int{
	"etcd":                    func(arguments []string) int { etcdmain.Main(arguments); return 0 },
	"kube-apiserver":          of(apiserver.NewAPIServerCommand),
	"kube-controller-manager": of(controllers.NewControllerManagerCommand),
	"kube-scheduler":          of(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
}

func main() {
	if len(os.Args) > 1 {
		if run, isKnown := components[os.Args[1]]; isKnown {
			// Each component parses the arguments that follow its name.
			os.Args = os.Args[1:]
			os.Exit(run(os.Args))
		}
	}
	names := make([]string, 0, len(components))
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintln(os.Stderr, "usage: testplane", strings.Join(names, "|"), "[ARGUMENT...]")
	os.Exit(64)
}
