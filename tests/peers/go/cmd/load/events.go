package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"
	pb "open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc/protobuf/v1"
)

const dataType = "io.open-cluster-management.works.v1alpha1.manifestbundles"

// bundle is one row of the -ids file.
type bundle struct {
	id       string
	consumer string
	version  int32
}

type attributes = map[string]*pb.CloudEventAttributeValue

func text(value string) *pb.CloudEventAttributeValue {
	return &pb.CloudEventAttributeValue{Attr: &pb.CloudEventAttributeValue_CeString{CeString: value}}
}

func number(value int32) *pb.CloudEventAttributeValue {
	return &pb.CloudEventAttributeValue{Attr: &pb.CloudEventAttributeValue_CeInteger{CeInteger: value}}
}

func moment(value time.Time) *pb.CloudEventAttributeValue {
	return &pb.CloudEventAttributeValue{Attr: &pb.CloudEventAttributeValue_CeTimestamp{CeTimestamp: timestamppb.New(value)}}
}

func event(source, kind string, of bundle, data []byte) *pb.CloudEvent {
	built := &pb.CloudEvent{
		Id: uuid.NewString(), Source: source, SpecVersion: "1.0", Type: dataType + "." + kind,
		Attributes: attributes{
			"ce-time":            moment(time.Now()),
			"ce-clustername":     text(of.consumer),
			"ce-resourceid":      text(of.id),
			"ce-resourceversion": number(of.version),
		},
	}
	if data != nil {
		built.Attributes["contenttype"] = text("application/json")
		built.Data = &pb.CloudEvent_BinaryData{BinaryData: data}
	}
	return built
}

func workMetadata(of bundle) *pb.CloudEventAttributeValue {
	return text(fmt.Sprintf(
		`{"name":"load-%s","namespace":%q,"uid":%q,"resourceVersion":"0","labels":{"load":"yes"}}`, of.id, of.consumer, of.id))
}

func specEvent(source, action string, of bundle, data []byte) *pb.CloudEvent {
	built := event(source, "spec."+action, of, data)
	built.Attributes["ce-originalsource"] = text("")
	built.Attributes["ce-logtracing"] = text("{}")
	built.Attributes["ce-metadata"] = workMetadata(of)
	return built
}

func deleteEvent(source string, of bundle) *pb.CloudEvent {
	built := specEvent(source, "delete_request", of, nil)
	built.Attributes["ce-deletiontimestamp"] = moment(time.Now())
	return built
}

func statusEvent(agent string, of bundle, sequence snowflake.ID, data []byte) *pb.CloudEvent {
	built := event(agent, "status.update_request", of, data)
	built.Attributes["ce-originalsource"] = text("maestro")
	built.Attributes["ce-sequenceid"] = text(sequence.String())
	built.Attributes["ce-statushash"] = text(sequence.String())
	built.Attributes["ce-logtracing"] = text("{}")
	built.Attributes["ce-metadata"] = workMetadata(of)
	return built
}

// manifests is the data of a spec event: one ConfigMap, padded to about size bytes.
func manifests(size int, salt string) []byte {
	return wrapped(configMap(size, "load", salt))
}

// namedManifests is the same under a name of its own, so that works do not fight over one object on a real cluster.
func namedManifests(size int, name string) []byte {
	return wrapped(configMap(size, name, "created"))
}

func wrapped(manifest []byte) []byte {
	return []byte(`{"manifests":[` + string(manifest) + `]}`)
}

func configMap(size int, name, salt string) []byte {
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"data":     map[string]string{"salt": salt, "padding": strings.Repeat("x", max(0, size-200))},
	})
	if err != nil {
		panic(err)
	}
	return data
}

// conditions is the data of a status event; the message makes each one differ from the last.
func conditions(version int32, message string) []byte {
	now := time.Now().UTC().Format(time.RFC3339)
	one := func(kind, reason string) string {
		return fmt.Sprintf(
			`{"type":%q,"status":"True","reason":%q,"message":%q,"observedGeneration":%d,"lastTransitionTime":%q}`,
			kind, reason, message, version, now)
	}
	applied, available := one("Applied", "AppliedManifestWorkComplete"), one("Available", "ResourcesAvailable")
	return []byte(fmt.Sprintf(
		`{"conditions":[%s,%s],"resourceStatus":[{"resourceMeta":{"ordinal":0,"version":"v1","kind":"ConfigMap","resource":"configmaps",`+
			`"name":"load","namespace":"default"},"conditions":[%s,%s],"statusFeedback":{}}]}`,
		applied, available, applied, available))
}
