package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetypes "k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/clients/work/payload"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/clients/work/source/codec"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/clients"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/types"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/utils"
)

// sdkCreate publishes create requests with the Go SDK's own CloudEvents client, the one inside Maestro's work client,
// at -limit events a second (0: the limit that the SDK comes with).
func sdkCreate(ctx context.Context, given settings) (report, error) {
	if len(given.consumers) == 0 {
		return report{}, errors.New("-mode sdk needs -consumers")
	}
	where := &grpc.GRPCOptions{Dialer: &grpc.GRPCDialer{URL: given.address}}
	sourceOptions := grpc.NewSourceOptions(where, given.source, payload.ManifestBundleEventDataType)
	sourceOptions.EventRateLimit = utils.EventRateLimit{QPS: float32(given.limit), Burst: given.limit}
	client, err := clients.NewCloudEventSourceClient(ctx, sourceOptions, nil, nil, codec.NewManifestBundleCodec())
	if err != nil {
		return report{}, err
	}
	create := types.CloudEventsType{
		CloudEventsDataType: payload.ManifestBundleEventDataType, SubResource: types.SubResourceSpec, Action: types.CreateRequestAction,
	}
	var started atomic.Int64
	return sum(given.mode, together(given.connections*given.workers, func(_ int, seen *tally) {
		for ctx.Err() == nil {
			number := int(started.Add(1)) - 1
			if given.requests > 0 && number >= given.requests {
				return
			}
			work := sdkWork(given.consumers[number%len(given.consumers)], number, given.size)
			begun := time.Now()
			err := client.Publish(ctx, create, work)
			switch {
			case err == nil:
				seen.succeeded(begun, time.Now())
			case ctx.Err() == nil:
				seen.failed(err)
			}
		}
	})), nil
}

func sdkWork(consumer string, number, size int) *workv1.ManifestWork {
	manifest := workv1.Manifest{RawExtension: runtime.RawExtension{Raw: configMap(size, "load", "created")}}
	return &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Name: "sdk-" + strconv.Itoa(number), Namespace: consumer, UID: kubetypes.UID(uuid.NewString()), ResourceVersion: "0",
		},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{manifest}}},
	}
}
