// Serve Google's in-memory Pub/Sub on loopback, for tests.
//
//	pubsub 127.0.0.1:8085 denied.txt 0s
//
// Filters and acknowledgement deadlines are enforced; nothing outlives the process. Calls that name a topic or a
// subscription in the second file, one on each line, are answered with PERMISSION_DENIED; the file is read for each call.
// The third argument is how long a stream lasts before it is closed in good order, as the real service does; 0s: for ever.
// SIGUSR1 cuts all connections and refuses new ones until SIGUSR2: an outage of the network, in which nothing is lost.
package main

import (
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type denials struct{ file string }

func (d denials) React(request any) (handled bool, answer any, err error) {
	var name string
	switch typed := request.(type) {
	case interface{ GetTopic() string }:
		name = typed.GetTopic()
	case interface{ GetSubscription() string }:
		name = typed.GetSubscription()
	}
	content, _ := os.ReadFile(d.file)
	if slices.Contains(strings.Fields(string(content)), name) {
		return true, nil, status.Error(codes.PermissionDenied, "User not authorized to perform this action.")
	}
	return false, nil, nil
}

// relay passes connections on to the server, except during an outage.
type relay struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	isDown bool
}

func (r *relay) setDown(isDown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isDown = isDown
	if isDown {
		for connection := range r.open {
			connection.Close()
		}
		clear(r.open)
	}
}

func (r *relay) keep(connections ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDown {
		return false
	}
	for _, connection := range connections {
		r.open[connection] = struct{}{}
	}
	return true
}

func (r *relay) pass(client net.Conn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	if !r.keep(client, server) {
		return
	}
	go func() {
		io.Copy(server, client)
		server.Close()
	}()
	io.Copy(client, server)
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: pubsub <address> <file of denied names> <duration of streams>")
	}
	lifetime, err := time.ParseDuration(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	var options []pstest.ServerReactorOption
	for _, method := range []string{"Publish", "Pull", "Acknowledge", "ModifyAckDeadline"} {
		options = append(options, pstest.ServerReactorOption{FuncName: method, Reactor: denials{os.Args[2]}})
	}
	server := pstest.NewServerWithAddress("127.0.0.1:0", options...)
	server.SetStreamTimeout(lifetime)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	relay := &relay{open: map[net.Conn]struct{}{}}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go relay.pass(connection, server.Addr)
		}
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2)
	for received := range signals {
		switch received {
		case syscall.SIGUSR1:
			relay.setDown(true)
		case syscall.SIGUSR2:
			relay.setDown(false)
		default:
			return
		}
	}
}
