package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "open-cluster-management.io/sdk-go/pkg/cloudevents/generic/options/grpc/protobuf/v1"
)

// publish keeps workers x connections requests under way until the limit or the deadline.
func publish(ctx context.Context, given settings) (report, error) {
	next, err := builder(given)
	if err != nil {
		return report{}, err
	}
	clients, closeAll, err := dial(given)
	if err != nil {
		return report{}, err
	}
	defer closeAll()

	var started atomic.Int64
	accepted := make([][]bundle, given.connections*given.workers)
	tallies := together(given.connections*given.workers, func(worker int, seen *tally) {
		client := clients[worker%given.connections]
		for ctx.Err() == nil {
			number := started.Add(1)
			if given.requests > 0 && number > int64(given.requests) {
				return
			}
			of, event := next(int(number - 1))
			request := &pb.PublishRequest{Event: event}
			begun := time.Now()
			_, err := client.Publish(ctx, request)
			switch {
			case err == nil:
				seen.succeeded(begun, time.Now())
				accepted[worker] = append(accepted[worker], of)
			case ctx.Err() == nil:
				seen.failed(err)
			}
		}
	})
	if given.mode == "create" && given.idFile != "" {
		if err := writeBundles(given.idFile, accepted); err != nil {
			return report{}, err
		}
	}
	return sum(given.mode, tallies), nil
}

// builder makes the n-th event of a run. Payloads that need not differ are made once: the load must not be ours.
func builder(given settings) (func(n int) (bundle, *pb.CloudEvent), error) {
	if given.mode == "create" {
		if len(given.consumers) == 0 {
			return nil, errors.New("-mode create needs -consumers")
		}
		data := manifests(given.size, "created")
		return func(n int) (bundle, *pb.CloudEvent) {
			of := bundle{id: uuid.NewString(), consumer: given.consumers[n%len(given.consumers)]}
			event := specEvent(given.source, "create_request", of, data)
			of.version = 1
			return of, event
		}, nil
	}

	bundles, err := readBundles(given.idFile)
	if err != nil {
		return nil, err
	}
	switch given.mode {
	case "update":
		return func(n int) (bundle, *pb.CloudEvent) {
			of := bundles[n%len(bundles)]
			of.version = 0
			return of, specEvent(given.source, "update_request", of, manifests(given.size, strconv.Itoa(n)))
		}, nil
	case "delete":
		// A second delete of the same bundle measures something else, so the list is walked once.
		if given.requests == 0 || given.requests > len(bundles) {
			return nil, fmt.Errorf("-ids holds %d bundles: give -requests up to that", len(bundles))
		}
		return func(n int) (bundle, *pb.CloudEvent) {
			return bundles[n], deleteEvent(given.source, bundles[n])
		}, nil
	}
	sequences, err := snowflake.NewNode(1)
	if err != nil {
		return nil, err
	}
	return func(n int) (bundle, *pb.CloudEvent) {
		of := bundles[n%len(bundles)]
		return of, statusEvent(given.source, of, sequences.Generate(), conditions(of.version, strconv.Itoa(n)))
	}, nil
}

func dial(given settings) ([]pb.CloudEventServiceClient, func(), error) {
	var clients []pb.CloudEventServiceClient
	var connections []*grpc.ClientConn
	closeAll := func() {
		for _, connection := range connections {
			_ = connection.Close()
		}
	}
	for range given.connections {
		connection, err := grpc.NewClient(given.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("cannot use -grpc %s: %w", given.address, err)
		}
		// Dialled ahead of the clock: the first request should not pay for the handshake.
		connection.Connect()
		connections = append(connections, connection)
		clients = append(clients, pb.NewCloudEventServiceClient(connection))
	}
	return clients, closeAll, nil
}

func writeBundles(path string, accepted [][]bundle) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	for _, some := range accepted {
		for _, one := range some {
			fmt.Fprintf(buffered, "%s %s %d\n", one.id, one.consumer, one.version)
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}

func readBundles(path string) ([]bundle, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("this mode needs -ids: %w", err)
	}
	defer file.Close()
	var bundles []bundle
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var one bundle
		if _, err := fmt.Sscan(lines.Text(), &one.id, &one.consumer, &one.version); err != nil {
			return nil, fmt.Errorf("%s line %d: want <id> <consumer> <version>: %w", path, len(bundles)+1, err)
		}
		bundles = append(bundles, one)
	}
	if len(bundles) == 0 {
		return nil, fmt.Errorf("%s names no bundle", path)
	}
	return bundles, lines.Err()
}
