package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	pb "open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc/protobuf/v1"

	"maestropy/peers/jsonline"
)

// subscribe counts what arrives on every stream until -requests events came in all, or the deadline.
// It prints {"subscribed":n} once all streams stand, so that a caller knows when to start sending.
func subscribe(ctx context.Context, given settings) (report, error) {
	clients, closeAll, err := dial(given)
	if err != nil {
		return report{}, err
	}
	defer closeAll()
	ctx, enough := context.WithCancel(ctx)
	defer enough()

	var standing, received atomic.Int64
	tallies := together(given.connections, func(worker int, seen *tally) {
		request := &pb.SubscriptionRequest{Source: given.source, DataType: dataType}
		if len(given.consumers) > 0 {
			request = &pb.SubscriptionRequest{ClusterName: given.consumers[worker%len(given.consumers)], DataType: dataType}
		}
		stream, err := clients[worker].Subscribe(ctx, request)
		if err == nil {
			// The server's headers say that the subscription is registered.
			_, err = stream.Header()
		}
		if err != nil {
			seen.failed(err)
			return
		}
		if standing.Add(1) == int64(given.connections) {
			jsonline.Write(map[string]int{"subscribed": given.connections})
		}
		for {
			event, err := stream.Recv()
			if err != nil {
				if ctx.Err() == nil {
					seen.failed(err)
				}
				return
			}
			if !strings.HasPrefix(event.GetType(), dataType) {
				continue // a heartbeat
			}
			number := received.Add(1)
			if given.requests > 0 && number > int64(given.requests) {
				return // deletions are sent again: events may be waiting behind the last one that counts
			}
			sent := time.Now()
			if stamp := event.GetAttributes()["ce-time"].GetCeTimestamp(); stamp != nil {
				sent = stamp.AsTime()
			}
			seen.succeeded(sent, time.Now())
			seen.bytes += int64(len(event.GetBinaryData()))
			if given.requests > 0 && number == int64(given.requests) {
				enough()
			}
		}
	})
	return sum(given.mode, tallies), nil
}

// list times whole answers: the body is read to its end.
func list(ctx context.Context, given settings) (report, error) {
	if given.requests == 0 && given.seconds <= 0 {
		return report{}, errors.New("-mode list needs -requests or -seconds")
	}
	parallel := given.connections * given.workers
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: parallel}}
	url := strings.TrimSuffix(given.rest, "/") + "/api/maestro/v1/resource-bundles?" + given.query
	var started atomic.Int64
	tallies := together(parallel, func(_ int, seen *tally) {
		for ctx.Err() == nil {
			if number := started.Add(1); given.requests > 0 && number > int64(given.requests) {
				return
			}
			begun := time.Now()
			length, err := get(ctx, client, url)
			switch {
			case err == nil:
				seen.succeeded(begun, time.Now())
				seen.bytes += length
			case ctx.Err() == nil:
				seen.failed(err)
			}
		}
	})
	return sum(given.mode, tallies), nil
}

func get(ctx context.Context, client *http.Client, url string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	length, err := io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s answered %s", url, response.Status)
	}
	return length, err
}
