package main

import (
	"slices"
	"sync"
	"time"
)

type report struct {
	Mode       string  `json:"mode"`
	Requests   int     `json:"requests"`
	Errors     int     `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
	Rate       float64 `json:"rate"`
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	// Of a burst: until the work was reported as available.
	Available50 float64 `json:"available_p50_ms,omitempty"`
	Available99 float64 `json:"available_p99_ms,omitempty"`
}

// tally is what one worker saw; workers share nothing while they run.
type tally struct {
	latencies  []time.Duration
	bytes      int64
	errors     int
	firstError error
	first      time.Time
	last       time.Time
}

func (t *tally) succeeded(started, ended time.Time) {
	if t.first.IsZero() {
		t.first = started
	}
	t.last = ended
	t.latencies = append(t.latencies, ended.Sub(started))
}

func (t *tally) failed(err error) {
	if t.errors == 0 {
		t.firstError = err
	}
	t.errors++
}

// together runs n workers to their end and keeps what each of them saw.
func together(n int, work func(worker int, seen *tally)) []*tally {
	tallies := make([]*tally, n)
	var workers sync.WaitGroup
	for worker := range n {
		tallies[worker] = &tally{}
		workers.Add(1)
		go func() {
			defer workers.Done()
			work(worker, tallies[worker])
		}()
	}
	workers.Wait()
	return tallies
}

// sum makes one report of all tallies. Time runs from the first start to the last answer, so that neither dialling
// nor waiting for a deadline dilutes the rate.
func sum(mode string, tallies []*tally) report {
	result := report{Mode: mode}
	var all []time.Duration
	var first, last time.Time
	for _, one := range tallies {
		all = append(all, one.latencies...)
		result.Bytes += one.bytes
		result.Errors += one.errors
		if result.FirstError == "" && one.firstError != nil {
			result.FirstError = one.firstError.Error()
		}
		if !one.first.IsZero() && (first.IsZero() || one.first.Before(first)) {
			first = one.first
		}
		if one.last.After(last) {
			last = one.last
		}
	}
	result.Requests = len(all)
	if len(all) == 0 {
		return result
	}
	result.Seconds = last.Sub(first).Seconds()
	if result.Seconds > 0 {
		result.Rate = float64(len(all)) / result.Seconds
	}
	result.P50, result.P95, result.P99, result.Max = quantile(all, 0.50), quantile(all, 0.95), quantile(all, 0.99), quantile(all, 1)
	return result
}

// quantile returns milliseconds, and sorts what it is given.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[min(len(all)-1, int(q*float64(len(all))))].Microseconds()) / 1000
}
