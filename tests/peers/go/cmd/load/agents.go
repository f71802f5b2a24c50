package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/snowflake"

	"maestropy/peers/jsonline"
)

// syncAgents lets the agents of all consumers in -ids connect at the same moment, each knowing all its bundles but
// -lacking of them, and waits until every one has what it lacks. A latency is one agent's time, from dialling.
func syncAgents(ctx context.Context, given settings) (report, error) {
	bundles, err := readBundles(given.idFile)
	if err != nil {
		return report{}, err
	}
	owned := map[string][]bundle{}
	for _, one := range bundles {
		owned[one.consumer] = append(owned[one.consumer], one)
	}
	consumers := make([]string, 0, len(owned))
	for consumer := range owned {
		consumers = append(consumers, consumer)
	}
	tallies := together(len(consumers), func(worker int, seen *tally) {
		begun := time.Now()
		if err := syncAgent(ctx, given, owned[consumers[worker]], seen); err != nil {
			seen.failed(fmt.Errorf("agent of %s: %w", consumers[worker], err))
			return
		}
		seen.succeeded(begun, time.Now())
	})
	return sum(given.mode, tallies), nil
}

func syncAgent(ctx context.Context, given settings, bundles []bundle, seen *tally) error {
	lacking := map[string]bool{}
	var known bytes.Buffer
	for n, one := range bundles {
		if given.lacking == 0 || n < given.lacking {
			lacking[one.id] = true
			continue
		}
		if known.Len() > 0 {
			known.WriteByte(',')
		}
		fmt.Fprintf(&known, `{"resourceID":%q,"resourceVersion":%d}`, one.id, one.version)
	}
	consumer := bundles[0].consumer
	opened, err := connect(ctx, given, consumer)
	if err != nil {
		return err
	}
	defer opened.close()
	question := event(consumer+"-work-agent", "spec.resync_request", bundle{consumer: consumer},
		[]byte(`{"resourceVersions":[`+known.String()+`]}`))
	delete(question.Attributes, "ce-resourceid")
	delete(question.Attributes, "ce-resourceversion")
	question.Attributes["ce-originalsource"] = text("")
	seen.bytes += int64(len(question.GetBinaryData()))
	asked := make(chan error, 1)
	go func() { asked <- opened.publish(ctx, question) }()
	for len(lacking) > 0 {
		select {
		case got, open := <-opened.specs():
			if !open {
				return errors.New("the stream ended")
			}
			seen.bytes += int64(got.bytes)
			delete(lacking, got.of.id)
		case err := <-asked:
			if err != nil {
				return fmt.Errorf("resync: %w", err)
			}
			asked = nil
		case <-ctx.Done():
			return fmt.Errorf("%d works are still missing: %w", len(lacking), ctx.Err())
		}
	}
	return nil
}

// echo is the agents of -consumers that report every spec as applied and available at once. It prints {"subscribed":n}
// once all of them listen, and goes on until the deadline or a signal. A latency is the time a report took to be taken.
func echo(ctx context.Context, given settings) (report, error) {
	sequences, err := snowflake.NewNode(2)
	if err != nil {
		return report{}, err
	}
	var standing, told atomic.Int64
	tallies := together(len(given.consumers), func(worker int, seen *tally) {
		consumer := given.consumers[worker]
		opened, err := connect(ctx, given, consumer)
		if err != nil {
			seen.failed(err)
			return
		}
		defer opened.close()
		if standing.Add(1) == int64(len(given.consumers)) {
			jsonline.Write(map[string]int{"subscribed": len(given.consumers)})
		}
		// As many reports under way as a real agent has works in its hands.
		var reporters sync.WaitGroup
		var lock sync.Mutex
		for range given.workers {
			reporters.Add(1)
			go func() {
				defer reporters.Done()
				for {
					select {
					case got, open := <-opened.specs():
						if !open {
							return
						}
						message := strconv.FormatInt(told.Add(1), 10)
						event := statusEvent(consumer+"-work-agent", got.of, sequences.Generate(), conditions(got.of.version, message))
						begun := time.Now()
						err := opened.publish(ctx, event)
						lock.Lock()
						if err == nil {
							seen.succeeded(begun, time.Now())
							seen.bytes += int64(got.bytes)
						} else if ctx.Err() == nil {
							seen.failed(err)
						}
						lock.Unlock()
					case <-ctx.Done():
						return
					}
				}
			}()
		}
		reporters.Wait()
	})
	return sum(given.mode, tallies), nil
}
