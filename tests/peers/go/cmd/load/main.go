// Load measures how fast a Maestro server takes and gives events, over plain gRPC and HTTP: no SDK, no rate limit.
// One mode a run, one JSON document at the end. Modes:
//
//	create     publish create requests; -ids writes "<id> <consumer> <version>" of each accepted one
//	update     publish update requests for the ids in -ids, version 0 (overwrite the latest)
//	delete     publish delete requests for the ids in -ids
//	status     publish status updates as agents do, for the ids in -ids, to the broker address
//	subscribe  count events: as sources (-source), or as agents (-consumers); latency is arrival minus the event's time
//	list       GET the list of bundles over REST
//	burst      publish works and wait until each was reported as available; latency is publish to first status
//	echo       be the agents of -consumers, over -mqtt or gRPC, and report every work as available
//	sync       let the agents of all bundles in -ids connect and resync at once, each lacking -lacking of its bundles
//	sdk        publish create requests with the Go SDK's CloudEvents client, at its own rate limit or at -limit
//
// The work ends after -requests, or -seconds, whichever comes first.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"maestropy/peers/jsonline"
)

type settings struct {
	mode        string
	address     string
	rest        string
	source      string
	consumers   []string
	connections int
	workers     int
	requests    int
	seconds     float64
	size        int
	idFile      string
	query       string
	mqtt        string
	lacking     int
	limit       int
	inTurn      bool
}

func main() {
	var given settings
	var consumers string
	flag.StringVar(&given.mode, "mode", "create", "create, update, delete, status, subscribe, list, burst, echo, sync or sdk")
	flag.StringVar(&given.address, "grpc", "127.0.0.1:8090", "gRPC address: the source service, or the broker for status and agents")
	flag.StringVar(&given.rest, "rest", "http://127.0.0.1:8000", "base URL of the REST API, for list")
	flag.StringVar(&given.source, "source", "load", "source id, or the agent id for status")
	flag.StringVar(&consumers, "consumers", "", "comma separated consumer names; for subscribe: be their agents instead of a source")
	flag.IntVar(&given.connections, "connections", 1, "connections, or subscribers")
	flag.IntVar(&given.workers, "workers", 8, "requests under way at once on each connection")
	flag.IntVar(&given.requests, "requests", 1000, "stop after this many requests, or received events (0: no limit)")
	flag.Float64Var(&given.seconds, "seconds", 30, "stop after this many seconds")
	flag.IntVar(&given.size, "size", 1024, "bytes of manifest data in each create and update")
	flag.StringVar(&given.idFile, "ids", "", "file of bundle ids")
	flag.StringVar(&given.query, "query", "size=100", "query string of list")
	flag.StringVar(&given.mqtt, "mqtt", "", "host:port of an MQTT broker, for echo and sync instead of -grpc")
	flag.IntVar(&given.lacking, "lacking", 0, "bundles each agent of sync lacks (0: all of them)")
	flag.IntVar(&given.limit, "limit", 0, "events a second of the SDK's client (0: its own limit)")
	flag.BoolVar(&given.inTurn, "in-turn", false, "let each worker of burst wait for the status of a work before the next")
	flag.Parse()
	if consumers != "" {
		given.consumers = strings.Split(consumers, ",")
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(given.seconds*float64(time.Second)))
	defer cancel()
	result, err := run(ctx, given)
	if err != nil {
		log.Fatal(err)
	}
	jsonline.Write(result)
	if result.Errors > 0 {
		fmt.Fprintf(os.Stderr, "%d requests failed, the first: %s\n", result.Errors, result.FirstError)
	}
}

func run(ctx context.Context, given settings) (report, error) {
	switch given.mode {
	case "create", "update", "delete", "status":
		return publish(ctx, given)
	case "subscribe":
		return subscribe(ctx, given)
	case "list":
		return list(ctx, given)
	case "burst":
		return burst(ctx, given)
	case "echo":
		return echo(ctx, given)
	case "sync":
		return syncAgents(ctx, given)
	case "sdk":
		return sdkCreate(ctx, given)
	}
	return report{}, fmt.Errorf("unknown -mode %q", given.mode)
}
