// Workclient drives Maestro's own Go work client, one JSON command a line.
//
//	{"id":"1","op":"create","namespace":"cluster1","work":{...}}      -> {"id":"1","work":{...}}
//	{"id":"2","op":"get","namespace":"cluster1","name":"w"}           -> {"id":"2","work":{...}}
//	{"id":"3","op":"list","namespace":"cluster1","selector":"a=b"}    -> {"id":"3","works":[...],"continue":""}
//	{"id":"4","op":"patch","namespace":"cluster1","name":"w","from":{...},"to":{...}}
//	{"id":"5","op":"delete","namespace":"cluster1","name":"w"}        -> {"id":"5"}
//	{"id":"6","op":"watch","namespace":"cluster1"}                    -> {"id":"6"}, then {"watch":"6","type":...,"object":...}
//	{"id":"7","op":"unwatch","name":"6"}                              -> {"id":"7"}
//
// A refused command answers {"id":...,"error":{"reason":...,"code":...,"message":...}}. The end of the input ends the program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/openshift-online/maestro/pkg/api/openapi"
	"github.com/openshift-online/maestro/pkg/client/cloudevents/grpcsource"
	"github.com/openshift-online/ocm-sdk-go/logging"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubetypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	workv1client "open-cluster-management.io/api/client/work/clientset/versioned/typed/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/clients"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc"

	"maestropy/peers/jsonline"
)

type command struct {
	ID        string               `json:"id"`
	Op        string               `json:"op"`
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	Selector  string               `json:"selector"`
	Limit     int64                `json:"limit"`
	Continue  string               `json:"continue"`
	Work      *workv1.ManifestWork `json:"work"`
	From      *workv1.ManifestWork `json:"from"`
	To        *workv1.ManifestWork `json:"to"`
	Patch     json.RawMessage      `json:"patch"`
}

type failure struct {
	Reason  string `json:"reason"`
	Code    int32  `json:"code"`
	Message string `json:"message"`
}

type answer struct {
	ID       string                `json:"id"`
	Work     *workv1.ManifestWork  `json:"work,omitempty"`
	Works    []workv1.ManifestWork `json:"works,omitempty"`
	Continue string                `json:"continue,omitempty"`
	Error    *failure              `json:"error,omitempty"`
}

type watched struct {
	Watch  string `json:"watch"`
	Type   string `json:"type"`
	Object any    `json:"object"`
}

type session struct {
	client   workv1client.WorkV1Interface
	watchers map[string]watch.Interface
}

func main() {
	rest := flag.String("rest", "http://127.0.0.1:8000", "base URL of the REST API")
	address := flag.String("grpc", "127.0.0.1:8090", "address of the gRPC source service")
	config := flag.String("grpc-config", "", "configuration file of the gRPC connection, for TLS, instead of -grpc")
	source := flag.String("source", "peer-source", "source id")
	pause := flag.Duration("reconnect-delay", 0, "pause before every reconnect (0: the SDK's own, growing ones)")
	silence := flag.Duration("healthiness-timeout", 20*time.Second, "reconnect after this long without a heartbeat")
	flag.Parse()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	logger, err := logging.NewStdLoggerBuilder().Streams(os.Stderr, os.Stderr).Build()
	if err != nil {
		log.Fatalf("cannot build a logger: %v", err)
	}
	api := openapi.NewAPIClient(&openapi.Configuration{
		DefaultHeader: map[string]string{},
		UserAgent:     "maestropy-peers",
		Servers:       openapi.ServerConfigurations{{URL: *rest}},
		HTTPClient:    &http.Client{Timeout: 30 * time.Second},
	})
	if *pause > 0 {
		clients.DelayFn = func() time.Duration { return *pause }
	}
	client, err := grpcsource.NewMaestroGRPCSourceWorkClient(ctx, logger, api, connection(*address, *config, silence), *source)
	if err != nil {
		log.Fatalf("cannot build the work client: %v", err)
	}

	open := &session{client: client, watchers: map[string]watch.Interface{}}
	// The client keeps the namespace of the last call in itself, so commands run strictly one by one.
	jsonline.Read(func(order command) { jsonline.Write(open.carryOut(ctx, order)) })
}

func connection(address, config string, silence *time.Duration) *grpc.GRPCOptions {
	if config == "" {
		return &grpc.GRPCOptions{Dialer: &grpc.GRPCDialer{URL: address}, ServerHealthinessTimeout: silence}
	}
	options, err := grpc.BuildGRPCOptionsFromFlags(config)
	if err != nil {
		log.Fatalf("cannot read -grpc-config: %v", err)
	}
	options.ServerHealthinessTimeout = silence
	return options
}

func (s *session) carryOut(ctx context.Context, order command) answer {
	reply := answer{ID: order.ID}
	works := s.client.ManifestWorks(order.Namespace)
	var err error
	switch order.Op {
	case "create":
		reply.Work, err = works.Create(ctx, order.Work, metav1.CreateOptions{})
	case "get":
		reply.Work, err = works.Get(ctx, order.Name, metav1.GetOptions{})
	case "list":
		var list *workv1.ManifestWorkList
		if list, err = works.List(ctx, order.listOptions()); err == nil {
			reply.Works, reply.Continue = list.Items, list.Continue
		}
	case "patch":
		var patch []byte
		if patch, err = order.mergePatch(); err == nil {
			reply.Work, err = works.Patch(ctx, order.Name, kubetypes.MergePatchType, patch, metav1.PatchOptions{})
		}
	case "delete":
		err = works.Delete(ctx, order.Name, metav1.DeleteOptions{})
	case "watch":
		err = s.watch(ctx, order, works)
	case "unwatch":
		if watcher, ok := s.watchers[order.Name]; ok {
			watcher.Stop()
			delete(s.watchers, order.Name)
		}
	default:
		err = errors.New("unknown op " + order.Op)
	}
	reply.Error = describe(err)
	if reply.Error != nil {
		reply.Work = nil
	}
	return reply
}

func (s *session) watch(ctx context.Context, order command, works workv1client.ManifestWorkInterface) error {
	watcher, err := works.Watch(ctx, order.listOptions())
	if err != nil {
		return err
	}
	s.watchers[order.ID] = watcher
	go func() {
		for event := range watcher.ResultChan() {
			jsonline.Write(watched{Watch: order.ID, Type: string(event.Type), Object: event.Object})
		}
	}()
	return nil
}

func (c command) listOptions() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: c.Selector, Limit: c.Limit, Continue: c.Continue}
}

// mergePatch is the patch as given, or the one Maestro's helper makes of two views of the work.
func (c command) mergePatch() ([]byte, error) {
	if len(c.Patch) != 0 {
		return c.Patch, nil
	}
	if c.From == nil || c.To == nil {
		return nil, errors.New("patch needs either patch, or from and to")
	}
	return grpcsource.ToWorkPatch(c.From, c.To)
}

func describe(err error) *failure {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return &failure{Reason: string(status.Status().Reason), Code: status.Status().Code, Message: err.Error()}
	}
	return &failure{Message: err.Error()}
}
