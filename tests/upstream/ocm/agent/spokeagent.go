// Package spoke, for OCM's suite of its work agent: where the suite would run OCM's agent in its own process, this runs
// another program with the flags of that agent. It takes the place of the file of this name when the suite is built.
package spoke

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/library-go/pkg/controller/controllercmd"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"open-cluster-management.io/ocm/pkg/common/options"
)

// WorkAgentConfig holds what the suite chose.
type WorkAgentConfig struct {
	common *options.AgentOptions
	work   *WorkloadAgentOptions
}

// NewWorkAgentConfig keeps the options.
func NewWorkAgentConfig(common *options.AgentOptions, work *WorkloadAgentOptions) *WorkAgentConfig {
	return &WorkAgentConfig{common: common, work: work}
}

// RunWorkloadAgent runs $AGENT_COMMAND until the context ends; its log goes to $AGENT_LOGS.
func (o *WorkAgentConfig) RunWorkloadAgent(ctx context.Context, cc *controllercmd.ControllerContext) error {
	folder, err := os.MkdirTemp(os.Getenv("AGENT_LOGS"), o.common.SpokeClusterName+"-")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := o.writeKubeconfig(cc, kubeconfig); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(folder, "agent.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	words := append(strings.Fields(os.Getenv("AGENT_COMMAND")), o.flags(kubeconfig)...)
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	err = command.Run()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the agent ended (see %s): %w", log.Name(), err)
}

func (o *WorkAgentConfig) flags(kubeconfig string) []string {
	return []string{
		"agent",
		"--consumer-name=" + o.common.SpokeClusterName,
		"--kubeconfig=" + kubeconfig,
		"--namespace=default",
		"--listen=127.0.0.1:0",
		"--workload-source-driver=" + o.work.WorkloadSourceDriver,
		"--workload-source-config=" + o.work.WorkloadSourceConfig,
		"--cloudevents-client-id=" + o.work.CloudEventsClientID,
		"--status-sync-interval=" + o.work.StatusSyncInterval.String(),
		"--appliedmanifestwork-eviction-grace-period=" + o.work.AppliedManifestWorkEvictionGracePeriod.String(),
		fmt.Sprintf("--max-json-raw-length=%d", o.work.MaxJSONRawLength),
		// Cases have one or two works, so that one orphan is at least half of them: too many for our agent's default.
		"--orphan-limit-percent=100",
		"-v=4",
	}
}

func (o *WorkAgentConfig) writeKubeconfig(cc *controllercmd.ControllerContext, path string) error {
	config := cc.KubeConfig
	written := clientcmdapi.NewConfig()
	written.Clusters["test"] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	written.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	written.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	written.CurrentContext = "test"
	return clientcmd.WriteToFile(*written, path)
}
