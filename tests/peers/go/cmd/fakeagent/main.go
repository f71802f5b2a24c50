// Fakeagent is an agent made of the Go SDK's agent client, without a cluster behind it.
// It stores the works it is sent, reports each as applied and available, reports deleted ones as deleted, and answers
// resyncs. Every event it receives or sends is printed as a JSON line:
//
//	{"event":"received","cloudevent":{...}}   {"event":"sent","cloudevent":{...},"error":""}   {"event":"subscribed"}
//
// Commands on stdin: {"op":"report","uid":"...","message":"..."} sends a fresh status with that message,
// {"op":"hold"} and {"op":"release"} stop and resume reporting. The end of the input ends the program.
package main

import (
	"context"
	"flag"
	"log"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/clients/statushash"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/clients/work/agent/codec"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/clients/work/payload"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/clients"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/mqtt"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/types"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/utils"

	"maestropy/peers/jsonline"
)

type order struct {
	Op      string `json:"op"`
	UID     string `json:"uid"`
	Message string `json:"message"`
}

type line struct {
	Event      string             `json:"event"`
	CloudEvent *cloudevents.Event `json:"cloudevent,omitempty"`
	Error      string             `json:"error,omitempty"`
}

func main() {
	broker := flag.String("grpc", "", "address of the gRPC broker")
	mqttConfig := flag.String("mqtt-config", "", "MQTT configuration file, instead of -grpc")
	cluster := flag.String("cluster", "cluster1", "cluster name, which is the consumer name")
	agent := flag.String("agent", "", "agent client id (default <cluster>-work-agent)")
	rate := flag.Float64("rate", 0, "status events a second (0: the SDK's own limit)")
	flag.Parse()
	if *agent == "" {
		*agent = *cluster + "-work-agent"
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	agentOptions := connection(*broker, *mqttConfig, *cluster, *agent)
	agentOptions.EventRateLimit = utils.EventRateLimit{QPS: float32(*rate), Burst: int(*rate)}
	agentOptions.CloudEventsTransport = printing{agentOptions.CloudEventsTransport}

	keeper := newKeeper()
	client, err := clients.NewCloudEventAgentClient(ctx, agentOptions, keeper, statushash.StatusHash, codec.NewManifestBundleCodec())
	if err != nil {
		log.Fatalf("cannot build the agent client: %v", err)
	}
	client.Subscribe(ctx, keeper.receive)
	go keeper.report(ctx, client)
	go func() {
		for range client.SubscribedChan() {
			jsonline.Write(line{Event: "subscribed"})
			if err := client.Resync(ctx, types.SourceAll); err != nil {
				jsonline.Write(line{Event: "resync failed", Error: err.Error()})
			}
		}
	}()

	jsonline.Read(func(given order) {
		switch given.Op {
		case "report":
			keeper.change(given.UID, given.Message)
		case "hold":
			keeper.pause(true)
		case "release":
			keeper.pause(false)
		default:
			log.Fatalf("unknown op %q", given.Op)
		}
	})
}

func connection(broker, mqttConfig, cluster, agent string) *options.CloudEventsAgentOptions {
	if mqttConfig != "" {
		mqttOptions, err := mqtt.BuildMQTTOptionsFromFlags(mqttConfig)
		if err != nil {
			log.Fatalf("cannot read -mqtt-config: %v", err)
		}
		return mqtt.NewAgentOptions(mqttOptions, cluster, agent)
	}
	if broker == "" {
		log.Fatal("give -grpc or -mqtt-config")
	}
	grpcOptions := &grpc.GRPCOptions{Dialer: &grpc.GRPCDialer{URL: broker}}
	return grpc.NewAgentOptions(grpcOptions, cluster, agent, payload.ManifestBundleEventDataType)
}

// printing shows every event that passes the transport; the SDK hides the raw ones.
type printing struct{ options.CloudEventTransport }

func (p printing) Send(ctx context.Context, event cloudevents.Event) error {
	err := p.CloudEventTransport.Send(ctx, event)
	said := line{Event: "sent", CloudEvent: &event}
	if err != nil {
		said.Error = err.Error()
	}
	jsonline.Write(said)
	return err
}

func (p printing) Receive(ctx context.Context, handle options.ReceiveHandlerFn) error {
	return p.CloudEventTransport.Receive(ctx, func(ctx context.Context, event cloudevents.Event) {
		jsonline.Write(line{Event: "received", CloudEvent: &event})
		handle(ctx, event)
	})
}
