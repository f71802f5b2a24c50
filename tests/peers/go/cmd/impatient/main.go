// Impatient is the Go Maestro as published, command for command, but for one thing: it reconnects at once.
//
// Maestro waits 5 to 10 s before it reconnects, at the second loss 25 to 50 s, then one to two minutes. A test that
// takes connections away several times would only measure these pauses.
package main

import (
	"flag"
	"log"
	"os"
	"time"

	"github.com/openshift-online/maestro/cmd/maestro/agent"
	"github.com/openshift-online/maestro/cmd/maestro/migrate"
	"github.com/openshift-online/maestro/cmd/maestro/servecmd"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/clients"
)

const pause = 300 * time.Millisecond

func main() {
	clients.DelayFn = func() time.Duration { return pause }

	// A dependency may have registered flags of the same names for another logger.
	if flag.CommandLine.Lookup("alsologtostderr") != nil {
		flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	}
	klog.InitFlags(nil)
	root := &cobra.Command{Use: "maestro"}
	root.PersistentFlags().AddGoFlagSet(flag.CommandLine)
	root.AddCommand(migrate.NewMigrationCommand(), servecmd.NewServerCommand(), agent.NewAgentCommand())
	if err := root.Execute(); err != nil {
		log.Fatal(err)
	}
}
