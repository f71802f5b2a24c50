package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	pb "open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc/protobuf/v1"
)

// awaited is what a burst knows of its works.
type awaited struct {
	lock      sync.Mutex
	published map[string]time.Time
	first     map[string]time.Duration
	available map[string]time.Duration
	// Told when the work of that id is available.
	ready map[string]chan struct{}
	left  int
	done  chan struct{}
}

// burst publishes -requests works, as many at once as -connections x -workers allow, and waits until a subscriber of
// the same source has heard of each that it is available. A latency is the time from publishing a work to its first
// status; `available` is the time until it was reported as available.
func burst(ctx context.Context, given settings) (report, error) {
	if len(given.consumers) == 0 || given.requests == 0 {
		return report{}, errors.New("-mode burst needs -consumers and -requests")
	}
	clients, closeAll, err := dial(given)
	if err != nil {
		return report{}, err
	}
	defer closeAll()
	waited := &awaited{
		published: map[string]time.Time{}, first: map[string]time.Duration{}, available: map[string]time.Duration{},
		ready: map[string]chan struct{}{}, left: given.requests, done: make(chan struct{}),
	}
	stream, err := clients[0].Subscribe(ctx, &pb.SubscriptionRequest{Source: given.source, DataType: dataType})
	if err == nil {
		_, err = stream.Header()
	}
	if err != nil {
		return report{}, err
	}
	go func() {
		for {
			event, err := stream.Recv()
			if err != nil {
				return
			}
			if strings.HasPrefix(event.GetType(), dataType) {
				waited.hear(event, time.Now())
			}
		}
	}()

	prefix := uuid.NewString()[:8]
	var started atomic.Int64
	begun := time.Now()
	tallies := together(given.connections*given.workers, func(worker int, seen *tally) {
		client := clients[worker%given.connections]
		for ctx.Err() == nil {
			number := int(started.Add(1)) - 1
			if number >= given.requests {
				return
			}
			of := bundle{id: uuid.NewString(), consumer: given.consumers[number%len(given.consumers)]}
			event := specEvent(given.source, "create_request", of, namedManifests(given.size, prefix+"-"+of.id))
			ready := waited.publish(of.id, time.Now())
			if _, err := client.Publish(ctx, &pb.PublishRequest{Event: event}); err != nil {
				if ctx.Err() == nil {
					seen.failed(err)
				}
				continue
			}
			if given.inTurn {
				select {
				case <-ready:
				case <-ctx.Done():
				}
			}
		}
	})
	select {
	case <-waited.done:
	case <-ctx.Done():
	}
	return waited.sum(given.mode, tallies, begun), nil
}

func (a *awaited) publish(id string, at time.Time) <-chan struct{} {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.published[id] = at
	ready := make(chan struct{})
	a.ready[id] = ready
	return ready
}

func (a *awaited) hear(event *pb.CloudEvent, at time.Time) {
	id := event.GetAttributes()["ce-resourceid"].GetCeString()
	isAvailable := saysAvailable(event.GetBinaryData())
	a.lock.Lock()
	defer a.lock.Unlock()
	since, isOurs := a.published[id]
	if !isOurs {
		return
	}
	if _, known := a.first[id]; !known {
		a.first[id] = at.Sub(since)
	}
	if _, known := a.available[id]; isAvailable && !known {
		a.available[id] = at.Sub(since)
		close(a.ready[id])
		if a.left--; a.left == 0 {
			close(a.done)
		}
	}
}

func (a *awaited) sum(mode string, tallies []*tally, begun time.Time) report {
	a.lock.Lock()
	defer a.lock.Unlock()
	ended := time.Now()
	heard := &tally{first: begun, last: ended}
	for _, latency := range a.first {
		heard.latencies = append(heard.latencies, latency)
	}
	result := sum(mode, append(tallies, heard))
	result.Errors += a.left
	if a.left > 0 && result.FirstError == "" {
		result.FirstError = "not every work was reported as available in time"
	}
	var available []time.Duration
	for _, latency := range a.available {
		available = append(available, latency)
	}
	result.Available50, result.Available99 = quantile(available, 0.50), quantile(available, 0.99)
	return result
}

func saysAvailable(data []byte) bool {
	var status struct {
		Conditions []struct{ Type, Status string } `json:"conditions"`
	}
	if json.Unmarshal(data, &status) != nil {
		return false
	}
	for _, condition := range status.Conditions {
		if condition.Type == "Available" && condition.Status == "True" {
			return true
		}
	}
	return false
}
