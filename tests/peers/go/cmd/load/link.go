package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc/protobuf/v1"
)

// spec is what a simulated agent looks at in an event from the server.
type spec struct {
	of    bundle
	bytes int
}

// link is the connection of one simulated agent, over gRPC or MQTT. Specs arrive on a channel that is closed with it.
type link interface {
	publish(ctx context.Context, event *pb.CloudEvent) error
	specs() <-chan spec
	close()
}

// connect opens the link of consumer's agent and returns when its subscription stands.
func connect(ctx context.Context, given settings, consumer string) (link, error) {
	if given.mqtt != "" {
		return connectMQTT(ctx, given.mqtt, consumer)
	}
	return connectGRPC(ctx, given.address, consumer)
}

type grpcLink struct {
	connection *grpc.ClientConn
	client     pb.CloudEventServiceClient
	arrived    chan spec
	cancel     context.CancelFunc
}

func connectGRPC(ctx context.Context, address, consumer string) (link, error) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	opened := &grpcLink{connection: connection, client: pb.NewCloudEventServiceClient(connection), arrived: make(chan spec, 16), cancel: cancel}
	stream, err := opened.client.Subscribe(ctx, &pb.SubscriptionRequest{ClusterName: consumer, DataType: dataType})
	if err == nil {
		_, err = stream.Header()
	}
	if err != nil {
		opened.close()
		return nil, err
	}
	go func() {
		defer close(opened.arrived)
		for {
			event, err := stream.Recv()
			if err != nil {
				return
			}
			if !strings.HasPrefix(event.GetType(), dataType+".spec.") {
				continue
			}
			attributes := event.GetAttributes()
			of := bundle{
				id: attributes["ce-resourceid"].GetCeString(), consumer: consumer,
				version: attributes["ce-resourceversion"].GetCeInteger(),
			}
			select {
			case opened.arrived <- spec{of: of, bytes: len(event.GetBinaryData())}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return opened, nil
}

func (l *grpcLink) publish(ctx context.Context, event *pb.CloudEvent) error {
	_, err := l.client.Publish(ctx, &pb.PublishRequest{Event: event})
	return err
}

func (l *grpcLink) specs() <-chan spec { return l.arrived }

func (l *grpcLink) close() {
	l.cancel()
	_ = l.connection.Close()
}

type mqttLink struct {
	client  *paho.Client
	topic   string
	arrived chan spec
}

func connectMQTT(ctx context.Context, address, consumer string) (link, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	opened := &mqttLink{
		topic: fmt.Sprintf("sources/maestro/consumers/%s/agentevents", consumer),
		// Wide enough for any run: a handler that waited here would keep paho from reading its acknowledgements.
		arrived: make(chan spec, 100_000),
	}
	opened.client = paho.NewClient(paho.ClientConfig{
		// Reports are published from many goroutines at once.
		Conn: packets.NewThreadSafeConn(connection),
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(received paho.PublishReceived) (bool, error) {
			if got, isSpec := mqttSpec(received.Packet, consumer); isSpec {
				opened.arrived <- got
			}
			return true, nil
		}},
	})
	hello := &paho.Connect{ClientID: consumer + "-load", CleanStart: true, KeepAlive: 60}
	if _, err = opened.client.Connect(ctx, hello); err == nil {
		topic := fmt.Sprintf("sources/maestro/consumers/%s/sourceevents", consumer)
		wanted := &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: 1}}}
		_, err = opened.client.Subscribe(ctx, wanted)
	}
	if err != nil {
		_ = connection.Close()
		return nil, fmt.Errorf("the broker at %s: %w", address, err)
	}
	return opened, nil
}

func mqttSpec(message *paho.Publish, consumer string) (spec, bool) {
	properties := message.Properties.User
	if !strings.HasPrefix(properties.Get("ce-type"), dataType+".spec.") {
		return spec{}, false
	}
	version, _ := strconv.ParseInt(properties.Get("ce-resourceversion"), 10, 32)
	of := bundle{id: properties.Get("ce-resourceid"), consumer: consumer, version: int32(version)}
	return spec{of: of, bytes: len(message.Payload)}, true
}

func (l *mqttLink) publish(ctx context.Context, event *pb.CloudEvent) error {
	properties := paho.UserProperties{}
	properties.Add("ce-specversion", event.GetSpecVersion())
	properties.Add("ce-id", event.GetId())
	properties.Add("ce-source", event.GetSource())
	properties.Add("ce-type", event.GetType())
	for name, value := range event.GetAttributes() {
		if name == "contenttype" {
			continue
		}
		properties.Add(name, mqttText(value))
	}
	_, err := l.client.Publish(ctx, &paho.Publish{
		Topic: l.topic, QoS: 1, Payload: event.GetBinaryData(),
		Properties: &paho.PublishProperties{ContentType: "application/json", User: properties},
	})
	return err
}

func mqttText(value *pb.CloudEventAttributeValue) string {
	switch held := value.GetAttr().(type) {
	case *pb.CloudEventAttributeValue_CeInteger:
		return strconv.Itoa(int(held.CeInteger))
	case *pb.CloudEventAttributeValue_CeTimestamp:
		return held.CeTimestamp.AsTime().Format(time.RFC3339Nano)
	}
	return value.GetCeString()
}

func (l *mqttLink) specs() <-chan spec { return l.arrived }

func (l *mqttLink) close() { _ = l.client.Disconnect(&paho.Disconnect{}) }
